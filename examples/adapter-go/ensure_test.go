package main

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "digital-human-provider/examples/adapter-go/gen/dhp/provider/v1"
)

type ensureChange = func(*pb.EnsureRequest)

func TestEnsureMakesOneAndThenChangesNothing(t *testing.T) {
	b := newBench(t, vendorOptions{})
	made := b.mustEnsure(t, pb.Change_CHANGE_CREATED)
	for range 9 {
		if again := b.mustEnsure(t, pb.Change_CHANGE_NONE); again.GetProviderId() != made.GetProviderId() {
			t.Fatalf("%s, then %s", made.GetProviderId(), again.GetProviderId())
		}
	}
	if made.GetInstanceKey() != testKey || made.GetSpecHash() != "h1" || made.GetState() != pb.State_STATE_READY {
		t.Errorf("made %v", made)
	}
}

func TestTwentyAtOnceMakeOne(t *testing.T) {
	b := newBench(t, vendorOptions{Delay: 20 * time.Millisecond})
	var calls sync.WaitGroup
	for range 20 {
		calls.Go(func() {
			_, err := b.client.Ensure(callContext(t), ensureRequest())
			if err != nil {
				expectRefusal(t, err, refusal{code: codes.Aborted, reason: "BUSY", retries: true})
			}
		})
	}
	calls.Wait()
	if made := b.speakers(t); len(made) != 1 {
		t.Errorf("%d instances", len(made))
	}
}

func TestEnsureChangesWhatDiffersAndNothingElse(t *testing.T) {
	for name, row := range map[string]struct {
		change ensureChange
		want   pb.Change
	}{
		"another name":           {func(r *pb.EnsureRequest) { r.Spec.DisplayName = proto.String("second") }, pb.Change_CHANGE_UPDATED},
		"no name wanted":         {func(r *pb.EnsureRequest) { r.Spec.DisplayName = nil }, pb.Change_CHANGE_NONE},
		"another speed":          {func(r *pb.EnsureRequest) { r.Spec.Parameters["speed"] = "1.25" }, pb.Change_CHANGE_UPDATED},
		"the same speed":         {func(r *pb.EnsureRequest) { r.Spec.Parameters["speed"] = "1.00" }, pb.Change_CHANGE_NONE},
		"no speed wanted":        {func(r *pb.EnsureRequest) { r.Spec.Parameters = nil }, pb.Change_CHANGE_NONE},
		"another voice":          {func(r *pb.EnsureRequest) { r.Spec.Parameters["voice"] = "bass" }, pb.Change_CHANGE_UPDATED},
		"the language it has":    {func(r *pb.EnsureRequest) { r.Spec.Parameters["language"] = "en" }, pb.Change_CHANGE_NONE},
		"another hash alone":     {func(r *pb.EnsureRequest) { r.SpecHash = "h2" }, pb.Change_CHANGE_NONE},
		"a later object's uid":   {func(r *pb.EnsureRequest) { r.Owner.Uid = "u2" }, pb.Change_CHANGE_RESTAMPED},
		"only a check":           {func(r *pb.EnsureRequest) { r.ValidateOnly = true; r.Spec.DisplayName = proto.String("x") }, pb.Change_CHANGE_NONE},
		"a check, no not_after":  {func(r *pb.EnsureRequest) { r.ValidateOnly = true; r.NotAfter = nil }, pb.Change_CHANGE_NONE},
		"a quota we cannot keep": {func(r *pb.EnsureRequest) { r.Spec.Quota = &pb.Quota{DailyCalls: proto.Int64(1)} }, pb.Change_CHANGE_NONE},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, vendorOptions{})
			b.mustEnsure(t, pb.Change_CHANGE_CREATED)
			b.mustEnsure(t, row.want, row.change)
			if row.want != pb.Change_CHANGE_NONE {
				b.mustEnsure(t, pb.Change_CHANGE_NONE, row.change)
			}
			if made := b.speakers(t); len(made) != 1 {
				t.Errorf("%d instances", len(made))
			}
		})
	}
}

func TestEnsureRefusesWithoutTouchingAnything(t *testing.T) {
	ago := timestamppb.New(time.Now().Add(-time.Second))
	skewed := func(r *pb.EnsureRequest) { r.NotAfter = timestamppb.New(time.Now().Add(300 * time.Millisecond)) }
	for name, row := range map[string]struct {
		exists bool
		change ensureChange
		want   refusal
	}{
		"no not_after":         {false, func(r *pb.EnsureRequest) { r.NotAfter = nil }, refusal{code: codes.Aborted, reason: "TOO_LATE"}},
		"not_after passed":     {false, func(r *pb.EnsureRequest) { r.NotAfter = ago }, refusal{code: codes.Aborted, reason: "TOO_LATE"}},
		"within clock skew":    {false, skewed, refusal{code: codes.Aborted, reason: "TOO_LATE"}},
		"may not create":       {false, func(r *pb.EnsureRequest) { r.MayCreate = false }, refusal{code: codes.Aborted, reason: "IN_DOUBT", retries: true}},
		"another cluster":      {true, func(r *pb.EnsureRequest) { r.Owner.Cluster = "c2" }, refusal{code: codes.AlreadyExists, reason: "OWNED_BY_ANOTHER", owner: "c1"}},
		"another realm":        {true, func(r *pb.EnsureRequest) { r.Recorded = &pb.Recorded{Realm: "parrot:acct-2:eu"} }, refusal{code: codes.FailedPrecondition, reason: "WRONG_REALM", types: []string{"REALM"}}},
		"an immutable field":   {true, func(r *pb.EnsureRequest) { r.Spec.Parameters["language"] = "de" }, refusal{code: codes.FailedPrecondition, reason: "IMMUTABLE_FIELD", types: []string{"IMMUTABLE"}, fields: []string{"parameters.language"}}},
		"a check of the same":  {true, func(r *pb.EnsureRequest) { r.Spec.Parameters["language"] = "de"; r.ValidateOnly = true }, refusal{code: codes.FailedPrecondition, reason: "IMMUTABLE_FIELD"}},
		"adopt what is absent": {false, func(r *pb.EnsureRequest) { r.Adopt = &pb.Adopt{ProviderId: "spk_none"} }, refusal{code: codes.InvalidArgument, reason: "INVALID_FIELD", fields: []string{"adopt.providerID"}}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, vendorOptions{})
			if row.exists {
				b.mustEnsure(t, pb.Change_CHANGE_CREATED)
			}
			before := len(b.speakers(t))
			_, err := b.client.Ensure(callContext(t), ensureRequest(row.change))
			expectRefusal(t, err, row.want)
			if after := len(b.speakers(t)); after != before {
				t.Errorf("%d instances, then %d", before, after)
			}
		})
	}
}

func TestTheSecondAccountAndRegionAreOtherRealms(t *testing.T) {
	b := newBench(t, vendorOptions{})
	realms := map[string]bool{}
	for _, change := range []ensureChange{
		func(*pb.EnsureRequest) {},
		func(r *pb.EnsureRequest) { r.Target.Account = "second" },
		func(r *pb.EnsureRequest) { r.Target.Region = "us" },
	} {
		realms[b.mustEnsure(t, pb.Change_CHANGE_CREATED, change).GetRealm()] = true
	}
	b.mustEnsure(t, pb.Change_CHANGE_NONE, func(r *pb.EnsureRequest) { r.Target.Account = "default" })
	if len(realms) != 3 {
		t.Errorf("realms %v", realms)
	}
}

func TestAdoptionIsACompareAndSetOnTheStamp(t *testing.T) {
	theirs := owner{"c2", "u9"}
	for name, row := range map[string]struct {
		labels map[string]string
		from   *pb.Owner
		isMade bool
	}{
		"of nobody's":                    {nil, nil, true},
		"of another's without naming it": {makeStamp("their/ns/x", theirs, "").labels(), nil, false},
		"of another's by name":           {makeStamp("their/ns/x", theirs, "").labels(), ownerMessage(theirs), true},
		"of one key by name":             {makeStamp(testKey, theirs, "").labels(), ownerMessage(theirs), true},
		"with the wrong uid":             {makeStamp(testKey, theirs, "").labels(), &pb.Owner{Cluster: "c2", Uid: "u8"}, false},
		"of nobody's, but named":         {nil, ownerMessage(theirs), false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, vendorOptions{})
			id := b.seed(t, speaker{Name: "old", Labels: row.labels})
			adopt := func(r *pb.EnsureRequest) { r.Adopt = &pb.Adopt{ProviderId: id, TakeOverFrom: row.from} }
			if !row.isMade {
				_, err := b.client.Ensure(callContext(t), ensureRequest(adopt))
				expectRefusal(t, err, refusal{code: codes.AlreadyExists, reason: "OWNED_BY_ANOTHER"})
				return
			}
			adopted := b.mustEnsure(t, pb.Change_CHANGE_ADOPTED, adopt)
			if adopted.GetProviderId() != id || adopted.GetObserved().GetDisplayName() != "first" {
				t.Errorf("adopted %v", adopted)
			}
			b.mustEnsure(t, pb.Change_CHANGE_NONE, adopt)
		})
	}
}

func TestARecordedInstanceWithoutStampIsStampedAgain(t *testing.T) {
	b := newBench(t, vendorOptions{})
	id := b.seed(t, speaker{Name: "first", Speed: 1})
	recorded := func(r *pb.EnsureRequest) { r.Recorded = &pb.Recorded{ProviderId: id} }
	b.mustEnsure(t, pb.Change_CHANGE_RESTAMPED, recorded)
	b.mustEnsure(t, pb.Change_CHANGE_NONE)
}

func TestOfTwoWithOurKeyTheOldestIsOurs(t *testing.T) {
	b := newBench(t, vendorOptions{})
	labels := makeStamp(testKey, testOwner, "").labels()
	older := b.seed(t, speaker{Name: "first", Labels: labels})
	b.seed(t, speaker{Name: "first", Labels: labels})
	if found := b.mustEnsure(t, pb.Change_CHANGE_NONE); found.GetProviderId() != older {
		t.Errorf("%s, want %s", found.GetProviderId(), older)
	}
}

func TestACreateStepsBackFromAnOlderOne(t *testing.T) {
	b := newBench(t, vendorOptions{})
	older := speaker{ID: "spk_older", Name: "first", Speed: 1, Labels: makeStamp(testKey, testOwner, "h1").labels(),
		CreatedAt: time.Now().Add(-time.Minute)}
	// Another process commits its create between our look and ours.
	b.vendor.fault = func(call string) error {
		if call == "create" && b.vendor.records[place{"acct-1", "eu"}] == nil {
			b.vendor.records[place{"acct-1", "eu"}] = map[string]*record{older.ID: {Now: older}}
		}
		return nil
	}
	if kept := b.mustEnsure(t, pb.Change_CHANGE_NONE); kept.GetProviderId() != older.ID {
		t.Errorf("kept %s", kept.GetProviderId())
	}
	if left := b.speakers(t); len(left) != 1 {
		t.Errorf("%d instances", len(left))
	}
}

func TestAVendorThatIsAtItKeepsTheKeyAndTheResultIsFoundAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAdapter(options{vendor: vendorOptions{Delay: 2 * time.Second}, endpointHosts: "api.parrot.example"})
		ensure := func(wait time.Duration) (*pb.EnsureResponse, error) {
			ctx, cancel := context.WithTimeout(t.Context(), wait)
			defer cancel()
			late := func(r *pb.EnsureRequest) { r.NotAfter = timestamppb.New(time.Now().Add(time.Minute)) }
			return a.Ensure(ctx, ensureRequest(late))
		}
		// The list takes 2 s, the create commits after 3 s and answers after 4 s.
		_, err := ensure(3500 * time.Millisecond)
		expectRefusal(t, err, refusal{code: codes.DeadlineExceeded, reason: "VENDOR_TIMEOUT", outcome: pb.Outcome_OUTCOME_UNKNOWN})
		_, err = ensure(time.Minute)
		expectRefusal(t, err, refusal{code: codes.Aborted, reason: "BUSY", retries: true})
		if !a.flights.idle(t.Context()) {
			t.Fatal("not idle")
		}
		if known := a.flights.current("parrot:acct-1:eu " + testKey); known.id == "" || !known.isSeen {
			t.Errorf("nobody has looked at what was made: %v", known)
		}
		response, err := ensure(time.Minute)
		if err != nil || response.GetChange() != pb.Change_CHANGE_NONE {
			t.Fatalf("%v %v", response, err)
		}
	})
}

func TestACreateWithoutAnAnswerLeavesDoubtUntilItMustHaveShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAdapter(options{endpointHosts: "api.parrot.example"})
		ensure := func() (*pb.EnsureResponse, error) {
			late := func(r *pb.EnsureRequest) { r.NotAfter = timestamppb.New(time.Now().Add(time.Minute)) }
			return a.Ensure(t.Context(), ensureRequest(late))
		}
		a.vendor.fault = func(call string) error {
			if call == "create" {
				return errors.New("connection reset")
			}
			return nil
		}
		_, err := ensure()
		expectRefusal(t, err, refusal{code: codes.Unavailable, reason: "VENDOR_UNREADABLE", outcome: pb.Outcome_OUTCOME_UNKNOWN})
		a.vendor.fault = nil
		_, err = ensure()
		expectRefusal(t, err, refusal{code: codes.Aborted, reason: "IN_DOUBT", retries: true})
		_, err = a.Delete(t.Context(), deleteRequest())
		expectRefusal(t, err, refusal{code: codes.Aborted, reason: "IN_DOUBT", retries: true})
		time.Sleep(mutationDeadline + time.Second) // of the bubble's clock
		if response, err := ensure(); err != nil || response.GetChange() != pb.Change_CHANGE_CREATED {
			t.Fatalf("%v %v", response, err)
		}
	})
}

func TestListsThatLagMakeNoSecondInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAdapter(options{vendor: vendorOptions{ListLag: 10 * time.Second}, endpointHosts: "api.parrot.example"})
		late := func(r *pb.EnsureRequest) { r.NotAfter = timestamppb.New(time.Now().Add(time.Minute)) }
		for i, want := range []pb.Change{pb.Change_CHANGE_CREATED, pb.Change_CHANGE_NONE} {
			response, err := a.Ensure(t.Context(), ensureRequest(late))
			if err != nil || response.GetChange() != want {
				t.Fatalf("call %d: %v %v", i, response, err)
			}
		}
		if count := len(a.vendor.records[place{"acct-1", "eu"}]); count != 1 {
			t.Errorf("%d instances", count)
		}
	})
}

func TestDescribeNamesDriftAndShowsAnothersInstance(t *testing.T) {
	b := newBench(t, vendorOptions{})
	_, err := b.client.Describe(callContext(t), describeRequest())
	expectRefusal(t, err, refusal{code: codes.NotFound, reason: "NOT_FOUND"})
	b.mustEnsure(t, pb.Change_CHANGE_CREATED)
	request := describeRequest()
	request.Owner.Cluster = "c2"
	request.Spec = &pb.InstanceSpec{Parameters: map[string]string{"speed": "1.0", "voice": "tenor"}}
	response, err := b.client.Describe(callContext(t), request)
	if err != nil {
		t.Fatal(err)
	}
	drift := response.GetInstance().GetDrift()
	if len(drift) != 1 || drift[0].GetField() != "parameters.voice" || drift[0].GetWant() != "tenor" || drift[0].GetHave() != "alto" {
		t.Errorf("drift %v", drift)
	}
	if owner := response.GetInstance().GetOwner().GetCluster(); owner != "c1" {
		t.Errorf("owner %s", owner)
	}
}
