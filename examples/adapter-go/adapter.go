package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	pb "digital-human-provider/examples/adapter-go/gen/dhp/provider/v1"
)

const (
	adapterName     = "parrot"
	contractVersion = 1
	inDoubtRetry    = 2 * time.Second
)

// adapter serves ProviderAPI for Parrot. It keeps no state of its own but what flights says.
type adapter struct {
	pb.UnimplementedProviderAPIServer
	vendor  *vendor
	check   *checker
	flights *flights
	build   string
	// draining is closed when the process is asked to stop: health streams end.
	draining chan struct{}
}

// GetProviderInfo answers whatever version the caller speaks: the caller can say which one is missing.
func (a *adapter) GetProviderInfo(context.Context, *pb.GetProviderInfoRequest) (*pb.GetProviderInfoResponse, error) {
	nameBytesMax := int32(displayNameBytesMax)
	return &pb.GetProviderInfoResponse{
		Name:               adapterName,
		BuildVersion:       a.build,
		ContractVersionMin: contractVersion,
		ContractVersionMax: contractVersion,
		Capabilities: []pb.Capability{
			pb.Capability_CAPABILITY_UPDATE,
			pb.Capability_CAPABILITY_DELETE,
			pb.Capability_CAPABILITY_RELEASE,
			pb.Capability_CAPABILITY_ADOPT,
			pb.Capability_CAPABILITY_LIST_BY_OWNER,
			pb.Capability_CAPABILITY_BULK_HEALTH,
			pb.Capability_CAPABILITY_WATCH_HEALTH,
			pb.Capability_CAPABILITY_VALIDATE_ONLY,
		},
		StampPlace:          pb.StampPlace_STAMP_PLACE_METADATA,
		VisibilityLag:       durationpb.New(a.vendor.options.ListLag),
		ListsAreConsistent:  a.vendor.options.ListLag == 0,
		Regions:             a.check.regions,
		ParameterSchemaJson: parameterSchema(),
		Limits: &pb.ProviderLimits{
			NameBytesMax:       &nameBytesMax,
			SweepInterval:      durationpb.New(sweepInterval),
			MutationDeadline:   durationpb.New(mutationDeadline),
			ClockSkewAllowance: durationpb.New(clockSkew),
		},
	}, nil
}

// Ensure looks first, then changes at most one thing, then looks again.
func (a *adapter) Ensure(ctx context.Context, request *pb.EnsureRequest) (*pb.EnsureResponse, error) {
	response, err := a.ensure(ctx, request)
	return response, explain(err, fmt.Sprintf("ensure %q", request.GetInstanceKey()), request.GetTarget())
}

func (a *adapter) ensure(ctx context.Context, request *pb.EnsureRequest) (*pb.EnsureResponse, error) {
	asked, err := a.check.ensure(request)
	if err != nil {
		return nil, err
	}
	r, err := a.begin(asked.question)
	if err != nil {
		return nil, err
	}
	if asked.isValidateOnly {
		// Holds no key: it changes nothing, and may be asked while a change is in flight.
		return r.validate(ctx, asked)
	}
	return alone(ctx, a.flights, r.flightKey, r.hasSent.Load, func(ctx context.Context) (*pb.EnsureResponse, error) {
		response, err := r.ensure(ctx, asked)
		return response, r.conclude(err)
	})
}

// Describe is one instance as the vendor shows it, also another cluster's.
func (a *adapter) Describe(ctx context.Context, request *pb.DescribeRequest) (*pb.DescribeResponse, error) {
	response, err := a.describe(ctx, request)
	return response, explain(err, fmt.Sprintf("describe %q", request.GetInstanceKey()), request.GetTarget())
}

func (a *adapter) describe(ctx context.Context, request *pb.DescribeRequest) (*pb.DescribeResponse, error) {
	asked, err := a.check.instance(request)
	if err != nil {
		return nil, err
	}
	wanted, err := wantedSpec(request.GetSpec())
	if err != nil {
		return nil, err
	}
	r, err := a.begin(asked)
	if err != nil {
		return nil, err
	}
	found, err := r.locate(ctx, makeStamp(asked.key, asked.owner, ""), asked.recorded.GetProviderId())
	if err != nil {
		return nil, err
	}
	if found == nil {
		return nil, r.notFound(asked.key)
	}
	var drift []change
	if wanted != nil {
		drift = differences(*wanted, found)
	}
	return &pb.DescribeResponse{Instance: instanceMessage(found, r.realm, drift)}, nil
}

// begin refuses a record that means another realm than the target leads to.
func (a *adapter) begin(asked question) (*run, error) {
	if recorded := asked.recorded.GetRealm(); recorded != "" && recorded != asked.realm {
		elsewhere := newProblem(pb.ErrorReason_ERROR_REASON_WRONG_REALM,
			"recorded in %s, asked in %s", recorded, asked.realm)
		elsewhere.realm = asked.realm
		elsewhere.preconditions = []precondition{{
			pb.PreconditionType_PRECONDITION_TYPE_REALM, asked.realm, "the record says " + recorded,
		}}
		return nil, elsewhere
	}
	return &run{
		site:      asked.site,
		vendor:    a.vendor,
		flights:   a.flights,
		flightKey: asked.realm + " " + asked.key,
		notAfter:  asked.notAfter,
		outcome:   pb.Outcome_OUTCOME_NOT_APPLIED,
	}, nil
}

// locate finds by id, then by key; nil: proven absent.
func (r *run) locate(ctx context.Context, mark stamp, recordedID string) (*speaker, error) {
	known, err := r.getKnown(ctx, mark, recordedID)
	if known != nil || err != nil {
		return known, err
	}
	sharing, err := r.findByKey(ctx, mark)
	return oldestOf(sharing), err
}

func (r *run) notFound(key string) *problem {
	absent := newProblem(pb.ErrorReason_ERROR_REASON_NOT_FOUND, "the vendor says that it does not exist in %s", r.realm)
	absent.resource, absent.realm = key, r.realm
	return absent
}

// explain puts before an error what was to be done and where.
func explain(err error, what string, target *pb.Target) error {
	var failed *problem
	if !errors.As(err, &failed) {
		return err
	}
	host := "(no endpoint)"
	// Not the endpoint as it came: one that was refused may carry a password.
	if parsed, err := url.Parse(target.GetEndpoint()); err == nil && parsed.Host != "" {
		host = parsed.Host
	}
	explained := *failed
	explained.message = fmt.Sprintf("cannot %s at %s %s: %s", what, adapterName, host, failed.message)
	return &explained
}
