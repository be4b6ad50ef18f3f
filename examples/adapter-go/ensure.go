package main

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	pb "digital-human-provider/examples/adapter-go/gen/dhp/provider/v1"
)

const (
	// How long a create waits for its instance to show in lists that lag.
	settleMax  = 3 * time.Second
	settleStep = 200 * time.Millisecond
)

// ensured is what became of the instance.
type ensured struct {
	found  *speaker
	change pb.Change
}

// ensure runs with the key held.
func (r *run) ensure(ctx context.Context, asked ensureQuestion) (*pb.EnsureResponse, error) {
	if err := r.requireInTime(); err != nil {
		return nil, err
	}
	found, err := r.locateOrAdopt(ctx, asked)
	if err != nil {
		return nil, err
	}
	var done ensured
	if found == nil {
		done, err = r.create(ctx, asked)
	} else {
		done, err = r.correct(ctx, asked, found)
	}
	if err != nil {
		return nil, err
	}
	return r.respond(asked, done), nil
}

// validate is what ensure would find and refuse, without changing anything.
func (r *run) validate(ctx context.Context, asked ensureQuestion) (*pb.EnsureResponse, error) {
	found, err := r.locateOrAdopt(ctx, asked)
	if err != nil {
		return nil, err
	}
	if found == nil {
		planned := draftOf(asked.wanted, asked.stamp)
		return r.respond(asked, ensured{&planned, pb.Change_CHANGE_NONE}), nil
	}
	if err := requireChangeable(found, differences(asked.wanted, found)); err != nil {
		return nil, err
	}
	return r.respond(asked, ensured{found, pb.Change_CHANGE_NONE}), nil
}

// locateOrAdopt finds the speaker to work on: ours, or one that may be made ours. nil: proven absent.
func (r *run) locateOrAdopt(ctx context.Context, asked ensureQuestion) (*speaker, error) {
	recordedID := asked.recorded.GetProviderId()
	found, err := r.locate(ctx, asked.stamp, recordedID)
	if err != nil {
		return nil, err
	}
	if found != nil {
		switch ownershipOf(stampOf(found.Labels), asked.stamp) {
		case ours, predecessor:
			return found, nil
		case unowned:
			if found.ID == recordedID {
				return found, nil
			}
		}
	}
	isAimedAt := found == nil || found.ID == asked.adopt.GetProviderId()
	switch {
	case asked.adopt != nil && isAimedAt:
		return r.adoptable(ctx, asked)
	case found != nil:
		return nil, r.ownedByAnother(found)
	default:
		return nil, nil
	}
}

// adoptable is a compare and set on the stamp: without take_over_from the speaker must carry none,
// with it exactly that owner's, so that a take-over left in a file works once.
func (r *run) adoptable(ctx context.Context, asked ensureQuestion) (*speaker, error) {
	found, err := r.get(ctx, asked.adopt.GetProviderId())
	if err != nil {
		return nil, err
	}
	if found == nil {
		absent := newProblem(pb.ErrorReason_ERROR_REASON_INVALID_FIELD,
			"instance %s does not exist", asked.adopt.GetProviderId())
		absent.fields = []violation{{"adopt.providerID", "does not exist in " + r.realm}}
		return nil, absent
	}
	mark := stampOf(found.Labels)
	whose := ownershipOf(mark, asked.stamp)
	isExpected := whose == unowned
	if from := asked.adopt.GetTakeOverFrom(); from != nil {
		isExpected = mark != nil && mark.isOwnedBy(from.GetCluster()) &&
			(mark.owner.uid == "" || mark.owner.uid == from.GetUid())
	}
	if whose == ours || whose == predecessor || isExpected {
		return found, nil
	}
	return nil, r.ownedByAnother(found)
}

// correct makes an existing speaker as wanted: nothing, a new stamp, or one update.
func (r *run) correct(ctx context.Context, asked ensureQuestion, found *speaker) (ensured, error) {
	if found.Status == speakerRemoving {
		busy := newProblem(pb.ErrorReason_ERROR_REASON_BUSY, "instance %s is being deleted at the vendor", found.ID)
		busy.retryAfter = deletingPoll
		busy.preconditions = []precondition{{
			pb.PreconditionType_PRECONDITION_TYPE_STATE, "DELETING", "being deleted",
		}}
		return ensured{}, busy
	}
	changes := differences(asked.wanted, found)
	whose := ownershipOf(stampOf(found.Labels), asked.stamp)
	if whose == ours && len(changes) == 0 {
		return ensured{found, pb.Change_CHANGE_NONE}, nil
	}
	if err := requireChangeable(found, changes); err != nil {
		return ensured{}, err
	}
	err := r.mutate(ctx, found.ID, func(ctx context.Context) error {
		return r.vendor.UpdateSpeaker(ctx, r.place, found.ID, patchOf(changes, asked.stamp))
	})
	if err != nil {
		return ensured{}, err
	}
	again, err := r.getAgain(ctx, found.ID)
	if err != nil {
		return ensured{}, err
	}
	if again == nil {
		again = found
	}
	return ensured{again, r.changeOf(asked, found, whose, changes)}, nil
}

func (r *run) changeOf(asked ensureQuestion, found *speaker, whose ownership, changes []change) pb.Change {
	isAdopted := found.ID == asked.adopt.GetProviderId() && found.ID != asked.recorded.GetProviderId()
	switch {
	case isAdopted && (whose == unowned || whose == foreign):
		return pb.Change_CHANGE_ADOPTED
	case len(changes) > 0:
		return pb.Change_CHANGE_UPDATED
	default:
		return pb.Change_CHANGE_RESTAMPED
	}
}

// create makes what was proven absent. IN_DOUBT when it may not, or when an earlier create may still
// show up.
func (r *run) create(ctx context.Context, asked ensureQuestion) (ensured, error) {
	if err := r.requireMayCreate(asked); err != nil {
		return ensured{}, err
	}
	until := r.doubtUntil()
	var id string
	err := r.mutate(ctx, "", func(ctx context.Context) error {
		var err error
		id, err = r.vendor.CreateSpeaker(ctx, r.place, draftOf(asked.wanted, asked.stamp))
		return err
	})
	if err != nil {
		var failed *problem
		if !errors.As(err, &failed) || failed.outcome != pb.Outcome_OUTCOME_NOT_APPLIED {
			r.flights.remember(r.flightKey, aftermath{until: until})
		}
		return ensured{}, err
	}
	r.id = id
	r.flights.remember(r.flightKey, aftermath{id: id, until: until})
	made, sharing, err := r.lookAgain(ctx, id, asked.stamp)
	if err != nil {
		return ensured{}, err
	}
	if made == nil {
		planned := draftOf(asked.wanted, asked.stamp)
		planned.ID = id
		return ensured{&planned, pb.Change_CHANGE_CREATED}, nil
	}
	r.flights.remember(r.flightKey, aftermath{id: id, isSeen: true, until: until})
	if oldest := oldestOf(sharing); oldest != nil && byAge(*oldest, *made) < 0 {
		return r.stepBack(ctx, asked, made, oldest)
	}
	return ensured{made, pb.Change_CHANGE_CREATED}, nil
}

func (r *run) requireMayCreate(asked ensureQuestion) error {
	if !asked.mayCreate {
		refused := newProblem(pb.ErrorReason_ERROR_REASON_IN_DOUBT, "no such instance, and may_create is false")
		refused.retryAfter = inDoubtRetry
		return refused
	}
	if doubt := r.flights.doubt(r.flightKey); doubt > 0 {
		return r.inDoubt(doubt)
	}
	return nil
}

func (r *run) inDoubt(doubt time.Duration) *problem {
	open := newProblem(pb.ErrorReason_ERROR_REASON_IN_DOUBT, "an earlier create may still show its instance")
	open.retryAfter = doubt
	return open
}

// lookAgain looks until the new speaker shows, where lists lag; then or never, it is enough.
func (r *run) lookAgain(ctx context.Context, id string, mark stamp) (made *speaker, sharing []speaker, err error) {
	end := time.Now().Add(min(r.vendor.options.ListLag, settleMax))
	for {
		err = r.read(ctx, func(ctx context.Context) error {
			if made, err = r.get(ctx, id); err != nil {
				return err
			}
			sharing, err = r.findByKey(ctx, mark)
			return err
		})
		left := time.Until(end)
		isListed := made != nil && containsID(sharing, id)
		if err != nil || isListed || left <= 0 {
			return made, sharing, err
		}
		// Not the caller's context: what was sent has to be understood.
		if err := pause(context.WithoutCancel(ctx), min(left, settleStep)); err != nil {
			return nil, nil, err
		}
	}
}

func containsID(speakers []speaker, id string) bool {
	for _, one := range speakers {
		if one.ID == id {
			return true
		}
	}
	return false
}

// stepBack: two creates met; the older speaker is the one all agree on. The only second mutation of a
// call, and only of what the call itself has made.
func (r *run) stepBack(ctx context.Context, asked ensureQuestion, made, oldest *speaker) (ensured, error) {
	slog.Warn("two creates met, the older instance stays", "made", made.ID, "kept", oldest.ID)
	err := r.mutate(ctx, made.ID, func(ctx context.Context) error {
		return r.vendor.DeleteSpeaker(ctx, r.place, made.ID)
	})
	if err != nil {
		return ensured{}, err
	}
	r.flights.forget(r.flightKey)
	r.nothingRemains()
	if ownershipOf(stampOf(oldest.Labels), asked.stamp) == foreign {
		return ensured{}, r.ownedByAnother(oldest)
	}
	return ensured{oldest, pb.Change_CHANGE_NONE}, nil
}

func (r *run) getAgain(ctx context.Context, id string) (again *speaker, err error) {
	err = r.read(ctx, func(ctx context.Context) error {
		again, err = r.get(ctx, id)
		return err
	})
	return again, err
}

func (r *run) respond(asked ensureQuestion, done ensured) *pb.EnsureResponse {
	var drift []change
	if done.found.ID != "" {
		drift = differences(asked.wanted, done.found)
	}
	instance := instanceMessage(done.found, r.realm, drift)
	return &pb.EnsureResponse{
		Instance:  instance,
		Change:    done.change,
		PollAfter: pollAfter(instance.GetState()),
	}
}

// ownedByAnother: nothing was written to it.
func (r *run) ownedByAnother(found *speaker) *problem {
	refused := newProblem(pb.ErrorReason_ERROR_REASON_OWNED_BY_ANOTHER, "instance %s carries no readable owner", found.ID)
	if mark := stampOf(found.Labels); mark != nil {
		refused.owner = mark.ownerText()
		refused.message = "instance " + found.ID + " belongs to cluster " + refused.owner
	}
	refused.resource, refused.realm = found.ID, r.realm
	return refused
}

func requireChangeable(found *speaker, changes []change) error {
	stuck := newProblem(pb.ErrorReason_ERROR_REASON_IMMUTABLE_FIELD, "instance %s: cannot change", found.ID)
	for _, one := range changes {
		name, isParameter := strings.CutPrefix(one.field, "parameters.")
		if !isParameter || !parameters[name].isImmutable {
			continue
		}
		stuck.message += " " + one.field
		stuck.fields = append(stuck.fields, violation{one.field, "cannot be changed"})
		stuck.preconditions = append(stuck.preconditions, precondition{
			pb.PreconditionType_PRECONDITION_TYPE_IMMUTABLE, one.field, "is " + one.have + ", wanted " + one.want,
		})
	}
	if len(stuck.fields) == 0 {
		return nil
	}
	return stuck
}
