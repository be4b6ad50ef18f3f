package main

import (
	"context"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "digital-human-provider/examples/adapter-go/gen/dhp/provider/v1"
)

const testKey = "fleet/ns/name"

var testOwner = owner{cluster: "c1", uid: "u1"}

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	m.Run()
}

// bench is the adapter behind a real gRPC server on loopback.
type bench struct {
	*adapter
	client pb.ProviderAPIClient
	conn   *grpc.ClientConn
	server *server
}

func newBench(t *testing.T, vendor vendorOptions) *bench {
	t.Helper()
	a := newAdapter(options{vendor: vendor, endpointHosts: "api.parrot.example,*.api.parrot.example"})
	s := newServer(a, nil)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.serve(listener) }()
	t.Cleanup(s.grpc.Stop)
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &bench{adapter: a, client: pb.NewProviderAPIClient(conn), conn: conn, server: s}
}

func callContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func testTarget() *pb.Target {
	return &pb.Target{Endpoint: "https://api.parrot.example", Region: "eu"}
}

func ownerMessage(own owner) *pb.Owner { return &pb.Owner{Cluster: own.cluster, Uid: own.uid} }

func soon() *timestamppb.Timestamp { return timestamppb.New(time.Now().Add(5 * time.Second)) }

// ensureRequest is right in every field but those that the changes set.
func ensureRequest(changes ...func(*pb.EnsureRequest)) *pb.EnsureRequest {
	request := &pb.EnsureRequest{
		InstanceKey: testKey,
		Owner:       ownerMessage(testOwner),
		Target:      testTarget(),
		Spec:        &pb.InstanceSpec{DisplayName: proto.String("first"), Parameters: map[string]string{"speed": "1"}},
		SpecHash:    "h1",
		MayCreate:   true,
		NotAfter:    soon(),
	}
	for _, change := range changes {
		change(request)
	}
	return request
}

func deleteRequest(changes ...func(*pb.DeleteRequest)) *pb.DeleteRequest {
	request := &pb.DeleteRequest{
		InstanceKey: testKey, Owner: ownerMessage(testOwner), Target: testTarget(), NotAfter: soon(),
	}
	for _, change := range changes {
		change(request)
	}
	return request
}

func describeRequest() *pb.DescribeRequest {
	return &pb.DescribeRequest{InstanceKey: testKey, Owner: ownerMessage(testOwner), Target: testTarget()}
}

func (b *bench) mustEnsure(t *testing.T, want pb.Change, changes ...func(*pb.EnsureRequest)) *pb.Instance {
	t.Helper()
	response, err := b.client.Ensure(callContext(t), ensureRequest(changes...))
	if err != nil {
		t.Fatalf("Ensure: %v", err)
	}
	if response.GetChange() != want {
		t.Fatalf("change %v, want %v", response.GetChange(), want)
	}
	return response.GetInstance()
}

// seed puts a speaker at the vendor behind the adapter's back.
func (b *bench) seed(t *testing.T, draft speaker) string {
	t.Helper()
	id, err := b.vendor.CreateSpeaker(t.Context(), place{"acct-1", "eu"}, draft)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func (b *bench) speakers(t *testing.T) []speaker {
	t.Helper()
	b.vendor.mu.Lock()
	defer b.vendor.mu.Unlock()
	return b.vendor.listed(place{"acct-1", "eu"}, time.Now())
}

// refusal is what an error has to say; empty parts are not looked at.
type refusal struct {
	code    codes.Code
	reason  string
	outcome pb.Outcome
	fields  []string
	types   []string // of PreconditionFailure
	owner   string
	retries bool
}

func expectRefusal(t *testing.T, err error, want refusal) {
	t.Helper()
	got := status.Convert(err)
	if got.Code() != want.code {
		t.Fatalf("code %v (%s), want %v", got.Code(), got.Message(), want.code)
	}
	if want.outcome == pb.Outcome_OUTCOME_UNSPECIFIED {
		want.outcome = pb.Outcome_OUTCOME_NOT_APPLIED
	}
	info, outcome := detailOf[*errdetails.ErrorInfo](got), detailOf[*pb.MutationOutcome](got)
	if info.GetReason() != want.reason || info.GetDomain() != errorDomain {
		t.Errorf("ErrorInfo %v, want reason %s", info, want.reason)
	}
	if outcome.GetOutcome() != want.outcome {
		t.Errorf("outcome %v, want %v", outcome.GetOutcome(), want.outcome)
	}
	for _, field := range want.fields {
		violations := detailOf[*errdetails.BadRequest](got).GetFieldViolations()
		if !slices.ContainsFunc(violations, func(v *errdetails.BadRequest_FieldViolation) bool { return v.GetField() == field }) {
			t.Errorf("BadRequest %v does not name %s", violations, field)
		}
	}
	for _, kind := range want.types {
		violations := detailOf[*errdetails.PreconditionFailure](got).GetViolations()
		if !slices.ContainsFunc(violations, func(v *errdetails.PreconditionFailure_Violation) bool { return v.GetType() == kind }) {
			t.Errorf("PreconditionFailure %v has no %s", violations, kind)
		}
	}
	if owner := detailOf[*errdetails.ResourceInfo](got).GetOwner(); want.owner != "" && owner != want.owner {
		t.Errorf("ResourceInfo.owner %q, want %q", owner, want.owner)
	}
	if delay := detailOf[*errdetails.RetryInfo](got).GetRetryDelay().AsDuration(); want.retries && delay <= 0 {
		t.Errorf("no RetryInfo: %s", got.Message())
	}
	if strings.Contains(got.Message(), "s3cret") {
		t.Errorf("message repeats a secret: %s", got.Message())
	}
}

func detailOf[T any](from *status.Status) T {
	var none T
	for _, detail := range from.Details() {
		if found, is := detail.(T); is {
			return found
		}
	}
	return none
}
