package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	pb "digital-human-provider/examples/adapter-go/gen/dhp/provider/v1"
)

func TestDeleteRemovesAndThenSaysThatItIsNotThere(t *testing.T) {
	b := newBench(t, vendorOptions{})
	b.mustEnsure(t, pb.Change_CHANGE_CREATED)
	response, err := b.client.Delete(callContext(t), deleteRequest())
	if err != nil || response.GetState() != pb.RemovalState_REMOVAL_STATE_DELETED || response.GetRealm() != "parrot:acct-1:eu" {
		t.Fatalf("%v %v", response, err)
	}
	_, err = b.client.Delete(callContext(t), deleteRequest())
	expectRefusal(t, err, refusal{code: codes.NotFound, reason: "NOT_FOUND"})
	b.mustEnsure(t, pb.Change_CHANGE_CREATED)
}

func TestRemovalsThatAreRefusedTouchNothing(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*pb.DeleteRequest)
		want   refusal
	}{
		"another cluster": {func(r *pb.DeleteRequest) { r.Owner.Cluster = "c2" }, refusal{code: codes.NotFound, reason: "NOT_OURS", owner: "c1"}},
		"another realm":   {func(r *pb.DeleteRequest) { r.Recorded = &pb.Recorded{Realm: "elsewhere"} }, refusal{code: codes.FailedPrecondition, reason: "WRONG_REALM", types: []string{"REALM"}}},
		"another account": {func(r *pb.DeleteRequest) { r.Target.Account = "second" }, refusal{code: codes.NotFound, reason: "NOT_FOUND"}},
		"no not_after":    {func(r *pb.DeleteRequest) { r.NotAfter = nil }, refusal{code: codes.Aborted, reason: "TOO_LATE"}},
		"another key":     {func(r *pb.DeleteRequest) { r.InstanceKey = "f/n/x" }, refusal{code: codes.NotFound, reason: "NOT_FOUND"}},
		"no owner":        {func(r *pb.DeleteRequest) { r.Owner = nil }, refusal{code: codes.InvalidArgument, reason: "INVALID_FIELD", fields: []string{"owner.cluster"}}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, vendorOptions{})
			b.mustEnsure(t, pb.Change_CHANGE_CREATED)
			request := deleteRequest(row.change)
			_, err := b.client.Delete(callContext(t), request)
			expectRefusal(t, err, row.want)
			_, err = b.client.Release(callContext(t), &pb.ReleaseRequest{
				InstanceKey: request.GetInstanceKey(), Owner: request.GetOwner(), Target: request.GetTarget(),
				Recorded: request.GetRecorded(), NotAfter: request.GetNotAfter(),
			})
			expectRefusal(t, err, row.want)
			b.mustEnsure(t, pb.Change_CHANGE_NONE)
		})
	}
}

func TestDeleteByRecordedIDTakesAnInstanceWithoutStamp(t *testing.T) {
	b := newBench(t, vendorOptions{})
	id := b.seed(t, speaker{Name: "unstamped"})
	_, err := b.client.Delete(callContext(t), deleteRequest())
	expectRefusal(t, err, refusal{code: codes.NotFound, reason: "NOT_FOUND"})
	recorded := func(r *pb.DeleteRequest) { r.Recorded = &pb.Recorded{ProviderId: id} }
	if _, err := b.client.Delete(callContext(t), deleteRequest(recorded)); err != nil {
		t.Fatal(err)
	}
	if left := b.speakers(t); len(left) != 0 {
		t.Errorf("left %v", left)
	}
}

func TestWhileASecondOneOfOursIsThereDeleteIsNotFinished(t *testing.T) {
	b := newBench(t, vendorOptions{})
	labels := makeStamp(testKey, testOwner, "").labels()
	b.seed(t, speaker{Labels: labels})
	b.seed(t, speaker{Labels: labels})
	for _, want := range []pb.RemovalState{pb.RemovalState_REMOVAL_STATE_DELETING, pb.RemovalState_REMOVAL_STATE_DELETED} {
		response, err := b.client.Delete(callContext(t), deleteRequest())
		if err != nil || response.GetState() != want {
			t.Fatalf("%v %v, want %v", response, err, want)
		}
	}
}

func TestAVendorThatTakesItsTimeIsDeletingUntilItIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := vendorOptions{CreateTime: 5 * time.Second, RemoveTime: 5 * time.Second}
		a := newAdapter(options{vendor: slow, endpointHosts: "api.parrot.example"})
		created, err := a.Ensure(t.Context(), ensureRequest())
		if err != nil || created.GetInstance().GetState() != pb.State_STATE_PROVISIONING || created.GetPollAfter() == nil {
			t.Fatalf("%v %v", created, err)
		}
		for range 2 {
			response, err := a.Delete(t.Context(), deleteRequest())
			if err != nil || response.GetState() != pb.RemovalState_REMOVAL_STATE_DELETING || response.GetPollAfter() == nil {
				t.Fatalf("%v %v", response, err)
			}
		}
		_, err = a.Ensure(t.Context(), ensureRequest())
		expectRefusal(t, err, refusal{code: codes.Aborted, reason: "BUSY", types: []string{"STATE"}, retries: true})
		time.Sleep(slow.RemoveTime) // of the bubble's clock
		_, err = a.Delete(t.Context(), deleteRequest())
		expectRefusal(t, err, refusal{code: codes.NotFound, reason: "NOT_FOUND"})
	})
}

func TestReleaseTakesTheStampOffAndLeavesTheRest(t *testing.T) {
	b := newBench(t, vendorOptions{})
	made := b.mustEnsure(t, pb.Change_CHANGE_CREATED)
	release := &pb.ReleaseRequest{
		InstanceKey: testKey, Owner: ownerMessage(testOwner), Target: testTarget(), NotAfter: soon(),
	}
	response, err := b.client.Release(callContext(t), release)
	if err != nil || response.GetState() != pb.RemovalState_REMOVAL_STATE_DELETED {
		t.Fatalf("%v %v", response, err)
	}
	left := b.speakers(t)
	if len(left) != 1 || left[0].ID != made.GetProviderId() || len(left[0].Labels) != 0 || left[0].Name != "first" {
		t.Errorf("left %v", left)
	}
	_, err = b.client.Release(callContext(t), release)
	expectRefusal(t, err, refusal{code: codes.NotFound, reason: "NOT_FOUND"})
}

func TestAnInstanceThatVanishesDuringDeleteIsAttestedAbsent(t *testing.T) {
	b := newBench(t, vendorOptions{})
	b.mustEnsure(t, pb.Change_CHANGE_CREATED)
	b.vendor.fault = func(call string) error {
		if call == "delete" {
			clear(b.vendor.records)
		}
		return nil
	}
	_, err := b.client.Delete(callContext(t), deleteRequest())
	expectRefusal(t, err, refusal{code: codes.NotFound, reason: "NOT_FOUND"})
}

func TestADeleteWhoseCallerLeavesGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAdapter(options{vendor: vendorOptions{Delay: 2 * time.Second}, endpointHosts: "api.parrot.example"})
		late := func(r *pb.EnsureRequest) { r.NotAfter.Seconds += 60 }
		if _, err := a.Ensure(t.Context(), ensureRequest(late)); err != nil {
			t.Fatal(err)
		}
		// Finding it takes 4 s; the delete commits after 5 s.
		ctx, cancel := context.WithTimeout(t.Context(), 4500*time.Millisecond)
		defer cancel()
		_, err := a.Delete(ctx, deleteRequest(func(r *pb.DeleteRequest) { r.NotAfter.Seconds += 60 }))
		expectRefusal(t, err, refusal{code: codes.DeadlineExceeded, reason: "VENDOR_TIMEOUT", outcome: pb.Outcome_OUTCOME_UNKNOWN})
		if !a.flights.idle(t.Context()) {
			t.Fatal("not idle")
		}
		_, err = a.Describe(t.Context(), describeRequest())
		expectRefusal(t, err, refusal{code: codes.NotFound, reason: "NOT_FOUND"})
	})
}
