package main

import (
	"context"
	"fmt"
	"slices"

	"google.golang.org/protobuf/types/known/durationpb"

	pb "digital-human-provider/examples/adapter-go/gen/dhp/provider/v1"
)

// Delete ends what is ours, and believes it only when a look at the vendor agrees.
func (a *adapter) Delete(ctx context.Context, request *pb.DeleteRequest) (*pb.DeleteResponse, error) {
	state, realm, err := a.remove(ctx, request, (*run).delete)
	if err != nil {
		return nil, explain(err, fmt.Sprintf("delete %q", request.GetInstanceKey()), request.GetTarget())
	}
	return &pb.DeleteResponse{State: state, Realm: realm, PollAfter: removalPoll(state)}, nil
}

// Release takes our stamp off and leaves the speaker.
func (a *adapter) Release(ctx context.Context, request *pb.ReleaseRequest) (*pb.ReleaseResponse, error) {
	state, realm, err := a.remove(ctx, request, (*run).release)
	if err != nil {
		return nil, explain(err, fmt.Sprintf("release %q", request.GetInstanceKey()), request.GetTarget())
	}
	return &pb.ReleaseResponse{State: state, Realm: realm, PollAfter: removalPoll(state)}, nil
}

func removalPoll(state pb.RemovalState) *durationpb.Duration {
	if state == pb.RemovalState_REMOVAL_STATE_DELETING {
		return durationpb.New(deletingPoll)
	}
	return nil
}

type removal func(r *run, ctx context.Context, asked question) (pb.RemovalState, error)

func (a *adapter) remove(
	ctx context.Context, request removalRequest, work removal,
) (pb.RemovalState, string, error) {
	asked, err := a.check.removal(request)
	if err != nil {
		return 0, "", err
	}
	r, err := a.begin(asked)
	if err != nil {
		return 0, "", err
	}
	state, err := alone(ctx, a.flights, r.flightKey, r.hasSent.Load, func(ctx context.Context) (pb.RemovalState, error) {
		state, err := work(r, ctx, asked)
		return state, r.conclude(err)
	})
	return state, r.realm, err
}

// delete runs with the key held.
func (r *run) delete(ctx context.Context, asked question) (pb.RemovalState, error) {
	found, err := r.findOwn(ctx, asked)
	if err != nil {
		return 0, err
	}
	if found.Status == speakerRemoving {
		return pb.RemovalState_REMOVAL_STATE_DELETING, nil
	}
	isAbsent := false
	err = r.mutate(ctx, found.ID, func(ctx context.Context) error {
		err := r.vendor.DeleteSpeaker(ctx, r.place, found.ID)
		if isAbsent = saysAbsent(err); isAbsent {
			return nil
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	if isAbsent {
		r.nothingRemains()
		return 0, r.notFound(asked.key)
	}
	r.flights.forget(r.flightKey)
	rests, err := r.rests(ctx, asked, found.ID)
	if err != nil {
		return 0, err
	}
	return removalState(rests), nil
}

// rests tells whether something of ours is still there: the deleted one, or a second one where two
// creates once met. A list may still show what is gone, so the id is the better witness.
func (r *run) rests(ctx context.Context, asked question, deletedID string) (rests bool, err error) {
	mark := makeStamp(asked.key, asked.owner, "")
	err = r.read(ctx, func(ctx context.Context) error {
		again, err := r.get(ctx, deletedID)
		if err != nil || again != nil {
			rests = again != nil
			return err
		}
		sharing, err := r.findByKey(ctx, mark)
		rests = slices.ContainsFunc(sharing, func(s speaker) bool { return isOwn(&s, mark, "") })
		return err
	})
	return rests, err
}

// release runs with the key held.
func (r *run) release(ctx context.Context, asked question) (pb.RemovalState, error) {
	found, err := r.findOwn(ctx, asked)
	if err != nil {
		return 0, err
	}
	mark := stampOf(found.Labels)
	if mark != nil {
		off := speakerPatch{Labels: map[string]string{}}
		for name := range mark.labels() {
			off.Labels[name] = ""
		}
		err := r.mutate(ctx, found.ID, func(ctx context.Context) error {
			return r.vendor.UpdateSpeaker(ctx, r.place, found.ID, off)
		})
		if err != nil {
			return 0, err
		}
	}
	r.flights.forget(r.flightKey)
	again, err := r.getAgain(ctx, found.ID)
	if err != nil {
		return 0, err
	}
	isStillOurs := again != nil && isOwn(again, makeStamp(asked.key, asked.owner, ""), "")
	return removalState(isStillOurs), nil
}

func removalState(rests bool) pb.RemovalState {
	if rests {
		return pb.RemovalState_REMOVAL_STATE_DELETING
	}
	return pb.RemovalState_REMOVAL_STATE_DELETED
}

// findOwn returns what is ours, or an error that says what the vendor says: NOT_FOUND, NOT_OURS;
// IN_DOUBT where an earlier create may still show its instance.
func (r *run) findOwn(ctx context.Context, asked question) (*speaker, error) {
	if err := r.requireInTime(); err != nil {
		return nil, err
	}
	mark, recordedID := makeStamp(asked.key, asked.owner, ""), asked.recorded.GetProviderId()
	known, err := r.getKnown(ctx, mark, recordedID)
	if err != nil {
		return nil, err
	}
	if known != nil && isOwn(known, mark, recordedID) {
		return known, nil
	}
	sharing, err := r.findByKey(ctx, mark)
	if err != nil {
		return nil, err
	}
	isForeign := func(s speaker) bool { return !isOwn(&s, mark, recordedID) }
	if own := slices.DeleteFunc(slices.Clone(sharing), isForeign); len(own) > 0 {
		return oldestOf(own), nil
	}
	if len(sharing) > 0 {
		return nil, r.notOurs(&sharing[0])
	}
	if doubt := r.flights.doubt(r.flightKey); doubt > 0 {
		return nil, r.inDoubt(doubt)
	}
	return nil, r.notFound(asked.key)
}

// isOwn: without a stamp only the recorded id vouches.
func isOwn(found *speaker, mark stamp, recordedID string) bool {
	switch ownershipOf(stampOf(found.Labels), mark) {
	case unowned:
		return found.ID == recordedID
	case foreign:
		return false
	default:
		return true
	}
}

// notOurs: it was not touched.
func (r *run) notOurs(found *speaker) *problem {
	refused := r.ownedByAnother(found)
	refused.reason = pb.ErrorReason_ERROR_REASON_NOT_OURS
	refused.message += "; it was not touched"
	return refused
}
