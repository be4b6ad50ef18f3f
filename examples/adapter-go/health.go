package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "digital-human-provider/examples/adapter-go/gen/dhp/provider/v1"
)

const (
	sweepInterval     = time.Second
	sweepTimeout      = 5 * time.Second
	sweepLate         = 3 * sweepInterval
	heartbeatInterval = time.Second
	// The snapshot waits so long for the first sweep of every place, then goes without the late ones:
	// their instances come as changes.
	snapshotWait     = 1500 * time.Millisecond
	instancesPerPart = 200
	sweepPagesMax    = 1000
	confirmationsMax = 50
	// No wait that a caller tells of is believed beyond this.
	heldMax = time.Hour
)

// WatchHealth sends a snapshot first, then changes, and a heartbeat each second. The heartbeat says
// how old the knowledge of each target is, and does not wait for the vendor: a sweep that hangs shows.
func (a *adapter) WatchHealth(
	request *pb.WatchHealthRequest, stream grpc.ServerStreamingServer[pb.WatchHealthResponse],
) error {
	watch, err := a.newWatch(request)
	if err != nil {
		return explain(err, "watch health", nil)
	}
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	sweeps := make(chan sweep)
	for realm, at := range watch.realms {
		go a.sweepFor(ctx, request.GetOwnerCluster(), at, watch.heldUntil[realm], sweeps)
	}
	if err := watch.collectFirst(ctx, sweeps); err != nil {
		return err
	}
	if err := watch.sendSnapshot(stream); err != nil {
		return err
	}
	heartbeat := time.NewTicker(heartbeatInterval)
	defer heartbeat.Stop()
	err = watch.sendHeartbeat(stream)
	for err == nil {
		select {
		case <-ctx.Done():
			err = ctx.Err()
		case <-a.draining:
			err = shuttingDown("ended")
		case done := <-sweeps:
			err = watch.sendChanges(stream, done)
		case <-heartbeat.C:
			err = watch.sendHeartbeat(stream)
		}
	}
	return err
}

// watch is what one stream knows. Two targets that lead to one realm are swept once.
type watch struct {
	targets []watched
	realms  map[string]site
	known   map[string]*knowledge // by realm
	// By realm: the vendor asked for a wait, as the caller knows it.
	heldUntil map[string]time.Time
}

// watched is a target as it was asked for. One that is refused does not end the stream: the others
// are well, and its refusal is why nothing is known of it.
type watched struct {
	target  *pb.Target
	realm   string
	refusal string
}

type knowledge struct {
	instances  map[string]*pb.Instance // by the vendor's id
	observedAt time.Time               // zero: never
	message    string
}

// sweep is what one look at one realm has brought.
type sweep struct {
	realm     string
	instances map[string]*pb.Instance
	at        time.Time
	err       error
}

func (a *adapter) newWatch(request *pb.WatchHealthRequest) (*watch, error) {
	wrong := &mistakes{}
	wrong.required("owner_cluster", request.GetOwnerCluster(), clusterMax)
	switch count := len(request.GetTargets()); {
	case count == 0:
		wrong.add("targets", "is required")
	case count > targetsMax:
		wrong.add("targets", fmt.Sprintf("has more than %d entries", targetsMax))
	}
	if err := wrong.refusal(); err != nil {
		return nil, err
	}
	made := &watch{
		realms: map[string]site{}, known: map[string]*knowledge{}, heldUntil: map[string]time.Time{},
	}
	for _, target := range distinct(request.GetTargets()) {
		at, err := a.check.site(target)
		if err != nil {
			made.targets = append(made.targets, watched{target: target, refusal: cutText(err.Error(), textBytesMax)})
			continue
		}
		made.targets = append(made.targets, watched{target: target, realm: at.realm})
		made.realms[at.realm] = at
		made.known[at.realm] = &knowledge{message: "not looked at yet", instances: map[string]*pb.Instance{}}
	}
	latest := time.Now().Add(heldMax)
	for _, held := range request.GetHeld() {
		at, err := a.check.site(held.GetTarget())
		if err != nil || held.GetUntil() == nil {
			continue
		}
		until := held.GetUntil().AsTime()
		if until.After(latest) {
			until = latest
		}
		made.heldUntil[at.realm] = until
	}
	return made, nil
}

func distinct(targets []*pb.Target) []*pb.Target {
	var kept []*pb.Target
	seen := map[[3]string]bool{}
	for _, target := range targets {
		place := [3]string{target.GetEndpoint(), target.GetRegion(), target.GetAccount()}
		if !seen[place] {
			kept = append(kept, target)
		}
		seen[place] = true
	}
	return kept
}

// sweepFor looks at one realm again and again until the stream ends, and not before the vendor's wait
// is over.
func (a *adapter) sweepFor(
	ctx context.Context, cluster string, at site, heldUntil time.Time, sweeps chan<- sweep,
) {
	_ = pause(ctx, time.Until(heldUntil)) // its only error is that the stream has ended
	var before map[string]*pb.Instance
	for ctx.Err() == nil {
		done := sweep{realm: at.realm, at: time.Now()}
		done.instances, done.err = a.sweepOnce(ctx, cluster, at, before)
		if done.err == nil {
			before = done.instances
		}
		select {
		case sweeps <- done:
		case <-ctx.Done():
		}
		_ = pause(ctx, sweepInterval) // its only error is that the stream has ended
	}
}

// sweepOnce reads the list whole. What it no longer shows is confirmed by id, since lists lag.
func (a *adapter) sweepOnce(
	ctx context.Context, cluster string, at site, before map[string]*pb.Instance,
) (map[string]*pb.Instance, error) {
	ctx, cancel := context.WithTimeout(ctx, sweepTimeout)
	defer cancel()
	shown, err := a.listed(ctx, cluster, at)
	if err != nil {
		return nil, err
	}
	readsLeft := confirmationsMax
	for id, instance := range before {
		if shown[id] != nil {
			continue
		}
		if readsLeft == 0 {
			shown[id] = instance
			continue
		}
		readsLeft--
		found, err := a.vendor.GetSpeaker(ctx, at.place, id)
		if err != nil && !saysAbsent(err) {
			return nil, classify(err, false)
		}
		mark := stampOf(found.Labels)
		if err == nil && mark != nil && mark.isOwnedBy(cluster) {
			shown[id] = instanceMessage(&found, at.realm, nil)
		}
	}
	return shown, nil
}

func (a *adapter) listed(ctx context.Context, cluster string, at site) (map[string]*pb.Instance, error) {
	shown := map[string]*pb.Instance{}
	query := speakerQuery{Label: labelCluster, Value: cluster, PageSize: vendorPageMax}
	for range sweepPagesMax {
		page, err := a.vendor.ListSpeakers(ctx, at.place, query)
		if err != nil {
			return nil, classify(err, false)
		}
		for i := range page.Speakers {
			if found := &page.Speakers[i]; stampOf(found.Labels) != nil {
				shown[found.ID] = instanceMessage(found, at.realm, nil)
			}
		}
		if page.NextToken == "" {
			return shown, nil
		}
		query.PageToken = page.NextToken
	}
	return nil, newProblem(pb.ErrorReason_ERROR_REASON_VENDOR_UNREADABLE, "the vendor's list does not end")
}

// collectFirst waits for the first sweep of every realm, within bounds.
func (w *watch) collectFirst(ctx context.Context, sweeps <-chan sweep) error {
	late := time.NewTimer(snapshotWait)
	defer late.Stop()
	heard := map[string]bool{}
	for len(heard) < len(w.realms) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-late.C:
			return nil
		case done := <-sweeps:
			heard[done.realm] = true
			w.learn(done)
		}
	}
	return nil
}

// learn returns what has changed and what is gone since the sweep before. A sweep that failed takes
// nothing away: its age tells. What the vendor states of the account by refusing shows at once.
func (w *watch) learn(done sweep) (changed, gone []*pb.Instance) {
	known := w.known[done.realm]
	now := done.instances
	if done.err != nil {
		now = withRefusal(known.instances, done.err)
	}
	for _, id := range slices.Sorted(maps.Keys(now)) {
		if !isSame(known.instances[id], now[id]) {
			changed = append(changed, now[id])
		}
	}
	for _, id := range slices.Sorted(maps.Keys(known.instances)) {
		if now[id] == nil {
			gone = append(gone, known.instances[id])
		}
	}
	known.instances = now
	if done.err != nil {
		known.message = cutText(done.err.Error(), textBytesMax)
	} else {
		known.observedAt, known.message = done.at, ""
	}
	return changed, gone
}

// withRefusal is what is known, and what a refusal says of the account.
func withRefusal(known map[string]*pb.Instance, err error) map[string]*pb.Instance {
	var refused *problem
	if !errors.As(err, &refused) {
		return known
	}
	told := map[string]*pb.Instance{}
	for id, instance := range known {
		again := proto.CloneOf(instance)
		switch refused.reason {
		case pb.ErrorReason_ERROR_REASON_THROTTLED:
			if again.GetHealth().GetRateLimited() == nil {
				until := timestamppb.New(time.Now().Add(refused.retryAfter))
				again.Health.RateLimited = &pb.RateLimited{Until: until}
			}
		case pb.ErrorReason_ERROR_REASON_BILLING_STOPPED:
			again.Health.Billing = pb.Billing_BILLING_OVERDUE
		case pb.ErrorReason_ERROR_REASON_QUOTA_EXHAUSTED:
			again.Health.Billing = pb.Billing_BILLING_EXHAUSTED
		}
		told[id] = again
	}
	return told
}

// isSame leaves out when it was seen. Whatever else differs is news: a field that somebody changed at
// the vendor is drift, which only the caller can name.
func isSame(before, now *pb.Instance) bool {
	if before == nil {
		return false
	}
	seen := now.GetHealth().GetObservedAt()
	now.Health.ObservedAt = before.GetHealth().GetObservedAt()
	defer func() { now.Health.ObservedAt = seen }()
	return proto.Equal(before, now)
}

type healthStream = grpc.ServerStreamingServer[pb.WatchHealthResponse]

func (w *watch) sendSnapshot(stream healthStream) error {
	var all []*pb.Instance
	for _, realm := range slices.Sorted(maps.Keys(w.known)) {
		for _, id := range slices.Sorted(maps.Keys(w.known[realm].instances)) {
			all = append(all, w.known[realm].instances[id])
		}
	}
	for {
		part := all[:min(len(all), instancesPerPart)]
		all = all[len(part):]
		snapshot := &pb.HealthSnapshot{Instances: part, IsLast: len(all) == 0}
		err := stream.Send(&pb.WatchHealthResponse{Event: &pb.WatchHealthResponse_Snapshot{Snapshot: snapshot}})
		if err != nil || len(all) == 0 {
			return err
		}
	}
}

func (w *watch) sendChanges(stream healthStream, done sweep) error {
	changed, gone := w.learn(done)
	for part := range slices.Chunk(changed, instancesPerPart) {
		if err := sendChange(stream, &pb.HealthChange{Changed: part}); err != nil {
			return err
		}
	}
	for part := range slices.Chunk(gone, instancesPerPart) {
		if err := sendChange(stream, &pb.HealthChange{Gone: part}); err != nil {
			return err
		}
	}
	return nil
}

func sendChange(stream healthStream, change *pb.HealthChange) error {
	return stream.Send(&pb.WatchHealthResponse{Event: &pb.WatchHealthResponse_Change{Change: change}})
}

func (w *watch) sendHeartbeat(stream healthStream) error {
	beat := &pb.Heartbeat{}
	for _, one := range w.targets {
		entry := &pb.TargetKnowledge{Target: one.target, Message: one.refusal}
		if known := w.known[one.realm]; known != nil {
			known.describe(entry, one.realm)
		}
		beat.Targets = append(beat.Targets, entry)
	}
	return stream.Send(&pb.WatchHealthResponse{Event: &pb.WatchHealthResponse_Heartbeat{Heartbeat: beat}})
}

func (k *knowledge) describe(entry *pb.TargetKnowledge, realm string) {
	entry.Message = k.message
	if k.observedAt.IsZero() {
		return
	}
	entry.Realm, entry.ObservedAt = realm, timestamppb.New(k.observedAt)
	if k.message == "" && time.Since(k.observedAt) > sweepLate {
		entry.Message = "the vendor has not answered the latest look yet"
	}
}
