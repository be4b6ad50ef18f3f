package main

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	pb "digital-human-provider/examples/adapter-go/gen/dhp/provider/v1"
)

const (
	// What was sent to the vendor may take effect for so long.
	mutationDeadline = 10 * time.Second
	// Subtracted from not_after for clocks that differ.
	clockSkew = 500 * time.Millisecond
	// Where a list does not settle.
	listScansMax = 4
	listPagesMax = 1000
	listRetry    = time.Second
)

// run is one call at one place. It keeps account of what the call has done to the vendor, so that
// every error can say it.
type run struct {
	site
	vendor    *vendor
	flights   *flights
	flightKey string
	notAfter  time.Time
	hasSent   atomic.Bool // also read by the caller that waits
	outcome   pb.Outcome
	id        string
}

// requireInTime refuses when not_after is missing or has passed, less the skew allowance.
func (r *run) requireInTime() error {
	if !r.notAfter.IsZero() && time.Now().Before(r.notAfter.Add(-clockSkew)) {
		return nil
	}
	what := "has passed"
	if r.notAfter.IsZero() {
		what = "is missing"
	}
	return newProblem(pb.ErrorReason_ERROR_REASON_TOO_LATE, "not_after %s", what)
}

// read runs vendor reads. Before a mutation they end with the caller; after one they go on without
// the caller, since what was sent has to be understood.
func (r *run) read(ctx context.Context, reads func(context.Context) error) error {
	if r.hasSent.Load() {
		detached, cancel := context.WithTimeout(context.WithoutCancel(ctx), mutationDeadline)
		defer cancel()
		ctx = detached
	}
	return reads(ctx)
}

// mutate sends one change, which runs to the vendor's mutation deadline whatever the caller does.
// id: the instance it is about, where it is known already.
func (r *run) mutate(ctx context.Context, id string, send func(context.Context) error) error {
	if err := r.requireInTime(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil && !r.hasSent.Load() {
		return classify(err, false)
	}
	r.hasSent.Store(true)
	detached, cancel := context.WithTimeout(context.WithoutCancel(ctx), mutationDeadline)
	defer cancel()
	err := classify(send(detached), true)
	var failed *problem
	switch {
	case err == nil:
		r.outcome = pb.Outcome_OUTCOME_APPLIED
	case errors.As(err, &failed) && r.outcome != pb.Outcome_OUTCOME_APPLIED:
		// An error after an earlier mutation of this call leaves that one standing.
		r.outcome = failed.outcome
	}
	if id != "" {
		r.id = id
	}
	return err
}

// nothingRemains: what this call had done is undone.
func (r *run) nothingRemains() {
	r.outcome, r.id = pb.Outcome_OUTCOME_NOT_APPLIED, ""
}

// conclude is the error as the caller gets it: with the outcome of the whole call.
func (r *run) conclude(err error) error {
	var failed *problem
	if !errors.As(err, &failed) {
		return err
	}
	concluded := *failed
	concluded.outcome, concluded.providerID = r.outcome, r.id
	if concluded.realm == "" {
		concluded.realm = r.realm
	}
	return &concluded
}

// doubtUntil: till then a mutation begun now may come to be or to show.
func (r *run) doubtUntil() time.Time {
	return time.Now().Add(mutationDeadline + r.vendor.options.ListLag)
}

// get reads by the vendor's id; nil where the vendor attests that it does not exist.
func (r *run) get(ctx context.Context, id string) (*speaker, error) {
	found, err := r.vendor.GetSpeaker(ctx, r.place, id)
	if saysAbsent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, classify(err, false)
	}
	return &found, nil
}

// getKnown reads by recorded id, then by the id of a recent create: the speaker that carries our key,
// at the recorded id also one without a stamp. With another key the vendor gave the id to something else.
func (r *run) getKnown(ctx context.Context, wanted stamp, recordedID string) (*speaker, error) {
	for _, id := range []string{recordedID, r.flights.rememberedID(r.flightKey)} {
		if id == "" {
			continue
		}
		found, err := r.get(ctx, id)
		if err != nil {
			return nil, err
		}
		if found == nil {
			continue
		}
		mark := stampOf(found.Labels)
		if (mark != nil && mark.hasKeyOf(wanted)) || (mark == nil && id == recordedID) {
			return found, nil
		}
	}
	return nil, nil
}

// findByKey returns all that carry the key, oldest first; none: proven absent. What a list has shown
// is confirmed by id.
func (r *run) findByKey(ctx context.Context, wanted stamp) ([]speaker, error) {
	listed, err := r.settledList(ctx, wanted)
	if err != nil {
		return nil, err
	}
	var confirmed []speaker
	for _, id := range listed {
		found, err := r.get(ctx, id)
		if err != nil {
			return nil, err
		}
		if found == nil {
			continue
		}
		if mark := stampOf(found.Labels); mark != nil && mark.hasKeyOf(wanted) {
			confirmed = append(confirmed, *found)
		}
	}
	slices.SortFunc(confirmed, byAge)
	return confirmed, nil
}

// settledList: one page of a consistent list says it all; else two complete scans have to agree.
func (r *run) settledList(ctx context.Context, wanted stamp) ([]string, error) {
	var before []string
	for scan := range listScansMax {
		ids, pages, err := r.scan(ctx, wanted)
		if err != nil {
			return nil, err
		}
		isProof := pages == 1 && r.vendor.options.ListLag == 0
		if isProof || (scan > 0 && slices.Equal(before, ids)) {
			return ids, nil
		}
		before = ids
	}
	moving := newProblem(pb.ErrorReason_ERROR_REASON_IN_DOUBT,
		"the vendor's list keeps changing; absence is not proven")
	moving.retryAfter = listRetry
	return nil, moving
}

func (r *run) scan(ctx context.Context, wanted stamp) (ids []string, pages int, err error) {
	query := speakerQuery{Label: labelKeyHash, Value: wanted.keyShort, PageSize: vendorPageMax}
	for pages = 1; pages <= listPagesMax; pages++ {
		page, err := r.vendor.ListSpeakers(ctx, r.place, query)
		if err != nil {
			return nil, pages, classify(err, false)
		}
		for _, listed := range page.Speakers {
			ids = append(ids, listed.ID)
		}
		if page.NextToken == "" {
			return ids, pages, nil
		}
		query.PageToken = page.NextToken
	}
	return nil, pages, newProblem(pb.ErrorReason_ERROR_REASON_VENDOR_UNREADABLE,
		"the vendor's list has more than %d pages", listPagesMax)
}

// oldestOf: of several with one key the oldest is meant; one that is being removed only if there is
// no other.
func oldestOf(sorted []speaker) *speaker {
	for i := range sorted {
		if sorted[i].Status != speakerRemoving {
			return &sorted[i]
		}
	}
	if len(sorted) > 0 {
		return &sorted[0]
	}
	return nil
}
