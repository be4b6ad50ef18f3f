package main

import (
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "digital-human-provider/examples/adapter-go/gen/dhp/provider/v1"
)

const (
	provisioningPoll = 2 * time.Second
	deletingPoll     = 2 * time.Second
)

// change is one field that differs; the path is within the Kubernetes spec.
type change struct{ field, want, have string }

// differences come in a fixed order. What is not wanted is not compared, and this vendor shows every
// field, so nothing has to be guessed from the spec's hash.
func differences(wanted wantedSpeaker, found *speaker) []change {
	var changes []change
	compare := func(field, want, have string) {
		if want != have {
			changes = append(changes, change{field, want, have})
		}
	}
	if wanted.displayName != nil {
		compare("displayName", *wanted.displayName, found.Name)
	}
	have := parametersOf(found)
	for _, name := range slices.Sorted(maps.Keys(wanted.parameters)) {
		compare("parameters."+name, wanted.parameters[name], have[name])
	}
	return changes
}

func parametersOf(found *speaker) map[string]string {
	return map[string]string{
		"voice": found.Voice, "speed": speedText(found.Speed), "language": found.Language,
	}
}

// draftOf is what the vendor is asked to make.
func draftOf(wanted wantedSpeaker, mark stamp) speaker {
	draft := speaker{
		Voice:    wanted.parameters["voice"],
		Speed:    speedOf(wanted.parameters["speed"]),
		Language: wanted.parameters["language"],
		Labels:   mark.labels(),
	}
	if wanted.displayName != nil {
		draft.Name = *wanted.displayName
	}
	return draft
}

// patchOf makes the changes true and writes the stamp, in one request.
func patchOf(changes []change, mark stamp) speakerPatch {
	patch := speakerPatch{Labels: mark.labels()}
	for _, one := range changes {
		switch one.field {
		case "displayName":
			patch.Name = &one.want
		case "parameters.voice":
			patch.Voice = &one.want
		case "parameters.speed":
			speed := speedOf(one.want)
			patch.Speed = &speed
		case "parameters.language":
			patch.Language = &one.want
		}
	}
	return patch
}

// instanceMessage shows a speaker in the contract's words.
func instanceMessage(found *speaker, realm string, drift []change) *pb.Instance {
	message := &pb.Instance{
		ProviderId: found.ID,
		Realm:      realm,
		Owner:      &pb.Owner{},
		State:      stateOf(found),
		Observed:   &pb.InstanceSpec{DisplayName: &found.Name, Parameters: parametersOf(found)},
		Health: &pb.Health{
			Availability: availabilityOf(found),
			ObservedAt:   timestamppb.Now(),
		},
	}
	if !found.CreatedAt.IsZero() {
		message.CreatedAt = timestamppb.New(found.CreatedAt)
	}
	if mark := stampOf(found.Labels); mark != nil {
		message.Stamp, message.InstanceKey, message.SpecHash = mark.short, mark.key, mark.specHash
		message.Owner = &pb.Owner{Cluster: mark.owner.cluster, Uid: mark.owner.uid}
	}
	for _, one := range drift {
		message.Drift = append(message.Drift, &pb.Drift{Field: one.field, Want: &one.want, Have: &one.have})
	}
	return message
}

func stateOf(found *speaker) pb.State {
	switch found.Status {
	case speakerOnline:
		return pb.State_STATE_READY
	case speakerRemoving:
		return pb.State_STATE_DELETING
	default:
		return pb.State_STATE_PROVISIONING
	}
}

func availabilityOf(found *speaker) pb.Availability {
	switch found.Status {
	case speakerOnline:
		return pb.Availability_AVAILABILITY_AVAILABLE
	case speakerRemoving:
		return pb.Availability_AVAILABILITY_UNAVAILABLE
	default:
		return pb.Availability_AVAILABILITY_UNKNOWN
	}
}

// pollAfter: when asking again makes sense; nil: no need.
func pollAfter(state pb.State) *durationpb.Duration {
	switch state {
	case pb.State_STATE_PROVISIONING:
		return durationpb.New(provisioningPoll)
	case pb.State_STATE_DELETING:
		return durationpb.New(deletingPoll)
	default:
		return nil
	}
}
