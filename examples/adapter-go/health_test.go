package main

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"testing/synctest"

	pb "digital-human-provider/examples/adapter-go/gen/dhp/provider/v1"
)

// healthReader is a health stream without a network, so that its time is the bubble's.
type healthReader struct {
	grpc.ServerStream
	ctx  context.Context
	sent chan *pb.WatchHealthResponse
}

func (r *healthReader) Context() context.Context { return r.ctx }
func (r *healthReader) SetTrailer(metadata.MD)   {}
func (r *healthReader) Send(m *pb.WatchHealthResponse) error {
	select {
	case r.sent <- m:
		return nil
	case <-r.ctx.Done():
		return r.ctx.Err()
	}
}

// watchHealth starts a stream that ends with the test.
func watchHealth(t *testing.T, a *adapter, targets ...*pb.Target) *healthReader {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	reader := &healthReader{ctx: ctx, sent: make(chan *pb.WatchHealthResponse)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = a.WatchHealth(&pb.WatchHealthRequest{OwnerCluster: "c1", Targets: targets}, reader)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return reader
}

// next returns the next message of the wanted kind, within a minute of the bubble's time.
func next[T any](t *testing.T, reader *healthReader, pick func(*pb.WatchHealthResponse) *T) *T {
	t.Helper()
	late := time.After(time.Minute)
	for {
		select {
		case message := <-reader.sent:
			if found := pick(message); found != nil {
				return found
			}
		case <-late:
			t.Fatal("no such message")
		}
	}
}

func newQuietAdapter(vendor vendorOptions) *adapter {
	return newAdapter(options{vendor: vendor, endpointHosts: "api.parrot.example"})
}

func create(t *testing.T, a *adapter, key string, own owner) {
	t.Helper()
	_, err := a.Ensure(t.Context(), ensureRequest(func(r *pb.EnsureRequest) {
		r.InstanceKey, r.Owner, r.NotAfter = key, ownerMessage(own), soon()
	}))
	if err != nil {
		t.Fatal(err)
	}
}

func TestHealthBeginsWithTheOwnersSnapshotInParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newQuietAdapter(vendorOptions{})
		for i := range instancesPerPart + 1 {
			create(t, a, fmt.Sprintf("f/n/%d", i), testOwner)
		}
		create(t, a, "f/n/theirs", owner{"c2", "u"})
		reader := watchHealth(t, a, testTarget())
		for _, want := range []int{instancesPerPart, 1} {
			part := (<-reader.sent).GetSnapshot()
			if len(part.GetInstances()) != want || part.GetIsLast() != (want == 1) {
				t.Errorf("%d instances, last %v", len(part.GetInstances()), part.GetIsLast())
			}
		}
	})
}

func TestHealthTellsWhatChangesAndWhatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newQuietAdapter(vendorOptions{CreateTime: 10 * time.Second})
		reader := watchHealth(t, a, testTarget())
		if first := (<-reader.sent).GetSnapshot(); len(first.GetInstances()) != 0 || !first.GetIsLast() {
			t.Fatalf("first %v", first)
		}
		create(t, a, testKey, testOwner)
		begin := time.Now()
		for _, want := range []pb.State{pb.State_STATE_PROVISIONING, pb.State_STATE_READY} {
			change := next(t, reader, (*pb.WatchHealthResponse).GetChange)
			if len(change.GetChanged()) != 1 || change.GetChanged()[0].GetState() != want {
				t.Fatalf("%v, want %v", change, want)
			}
		}
		if took := time.Since(begin); took > 10*time.Second+2*sweepInterval {
			t.Errorf("READY was told after %v", took)
		}
		if _, err := a.Delete(t.Context(), deleteRequest()); err != nil {
			t.Fatal(err)
		}
		change := next(t, reader, (*pb.WatchHealthResponse).GetChange)
		if len(change.GetGone()) != 1 || change.GetGone()[0].GetStamp() == "" || change.GetGone()[0].GetRealm() == "" {
			t.Errorf("gone %v", change)
		}
	})
}

func TestHeartbeatsComeEachSecondAndSayHowOldTheKnowledgeIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newQuietAdapter(vendorOptions{})
		refused := testTarget()
		refused.Endpoint = "https://elsewhere.example"
		reader := watchHealth(t, a, testTarget(), refused, testTarget())
		beat := next(t, reader, (*pb.WatchHealthResponse).GetHeartbeat)
		if len(beat.GetTargets()) != 2 {
			t.Fatalf("targets %v", beat.GetTargets())
		}
		well, bad := beat.GetTargets()[0], beat.GetTargets()[1]
		if well.GetRealm() == "" || well.GetObservedAt() == nil || well.GetMessage() != "" {
			t.Errorf("well %v", well)
		}
		if bad.GetRealm() != "" || bad.GetObservedAt() != nil || bad.GetMessage() == "" {
			t.Errorf("refused %v", bad)
		}
		for range 5 {
			begin := time.Now()
			next(t, reader, (*pb.WatchHealthResponse).GetHeartbeat)
			if took := time.Since(begin); took > 2*time.Second {
				t.Errorf("a heartbeat after %v", took)
			}
		}
	})
}

func TestASweepThatHangsShowsInTheHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newQuietAdapter(vendorOptions{Delay: time.Hour})
		reader := watchHealth(t, a, testTarget())
		begin := time.Now()
		if first := (<-reader.sent).GetSnapshot(); !first.GetIsLast() || time.Since(begin) > 2*time.Second {
			t.Fatalf("snapshot %v after %v", first, time.Since(begin))
		}
		for range 10 {
			beat := next(t, reader, (*pb.WatchHealthResponse).GetHeartbeat)
			if known := beat.GetTargets()[0]; known.GetObservedAt() != nil || known.GetMessage() == "" {
				t.Errorf("knowledge %v", known)
			}
		}
	})
}

func TestWhatARefusalSaysOfTheAccountShowsAtOnceAndPasses(t *testing.T) {
	for code, isTold := range map[string]func(*pb.Health) bool{
		vendorTooManyCalls: func(h *pb.Health) bool { return h.GetRateLimited().GetUntil() != nil },
		vendorUnpaid:       func(h *pb.Health) bool { return h.GetBilling() == pb.Billing_BILLING_OVERDUE },
		vendorSpeakerLimit: func(h *pb.Health) bool { return h.GetBilling() == pb.Billing_BILLING_EXHAUSTED },
	} {
		synctest.Test(t, func(t *testing.T) {
			a := newQuietAdapter(vendorOptions{})
			create(t, a, testKey, testOwner)
			reader := watchHealth(t, a, testTarget())
			next(t, reader, (*pb.WatchHealthResponse).GetSnapshot)
			refuse := func(err error) {
				a.vendor.mu.Lock()
				defer a.vendor.mu.Unlock()
				a.vendor.fault = func(string) error { return err }
			}
			refuse(&vendorError{Code: code, RetryAfter: time.Minute})
			change := next(t, reader, (*pb.WatchHealthResponse).GetChange)
			if !isTold(change.GetChanged()[0].GetHealth()) {
				t.Errorf("%s: %v", code, change)
			}
			refuse(errors.New("reset"))
			next(t, reader, (*pb.WatchHealthResponse).GetHeartbeat)
			refuse(nil)
			change = next(t, reader, (*pb.WatchHealthResponse).GetChange)
			if isTold(change.GetChanged()[0].GetHealth()) {
				t.Errorf("%s does not pass: %v", code, change)
			}
		})
	}
}

func TestAHealthStreamNeedsAnOwnerAndTargets(t *testing.T) {
	b := newBench(t, vendorOptions{})
	many := make([]*pb.Target, targetsMax+1)
	for i := range many {
		many[i] = testTarget()
	}
	for field, request := range map[string]*pb.WatchHealthRequest{
		"owner_cluster": {Targets: []*pb.Target{testTarget()}},
		"targets":       {OwnerCluster: "c1", Targets: many},
	} {
		stream, err := b.client.WatchHealth(callContext(t), request)
		if err != nil {
			t.Fatal(err)
		}
		_, err = stream.Recv()
		expectRefusal(t, err, refusal{code: codes.InvalidArgument, reason: "INVALID_FIELD", fields: []string{field}})
	}
}
