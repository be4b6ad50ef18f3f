package main

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	pb "digital-human-provider/examples/adapter-go/gen/dhp/provider/v1"
)

func TestEnsureNamesEachRefusedField(t *testing.T) {
	b := newBench(t, vendorOptions{})
	type request = *pb.EnsureRequest
	long := func(bytes int) string { return strings.Repeat("x", bytes) }
	for name, row := range map[string]struct {
		change func(request)
		field  string
	}{
		"no key":              {func(r request) { r.InstanceKey = "" }, "instance_key"},
		"a key of one part":   {func(r request) { r.InstanceKey = "name" }, "instance_key"},
		"a key too long":      {func(r request) { r.InstanceKey = "f/n/" + long(379) }, "instance_key"},
		"a key with a tab":    {func(r request) { r.InstanceKey = "f/n/\t" }, "instance_key"},
		"no owner":            {func(r request) { r.Owner = nil }, "owner.cluster"},
		"a cluster too long":  {func(r request) { r.Owner.Cluster = long(254) }, "owner.cluster"},
		"no uid":              {func(r request) { r.Owner.Uid = "" }, "owner.uid"},
		"a uid too long":      {func(r request) { r.Owner.Uid = long(129) }, "owner.uid"},
		"no target":           {func(r request) { r.Target = nil }, "target"},
		"no endpoint":         {func(r request) { r.Target.Endpoint = "" }, "endpoint"},
		"no such region":      {func(r request) { r.Target.Region = "moon" }, "region"},
		"no spec":             {func(r request) { r.Spec = nil }, "spec"},
		"a hash too long":     {func(r request) { r.SpecHash = long(129) }, "spec_hash"},
		"an id too long":      {func(r request) { r.Recorded = &pb.Recorded{ProviderId: long(1025)} }, "recorded.provider_id"},
		"a realm too long":    {func(r request) { r.Recorded = &pb.Recorded{Realm: long(1025)} }, "recorded.realm"},
		"adopt without id":    {func(r request) { r.Adopt = &pb.Adopt{} }, "adopt.providerID"},
		"adopt from nobody":   {func(r request) { r.Adopt = &pb.Adopt{ProviderId: "i", TakeOverFrom: &pb.Owner{}} }, "adopt.takeOverFrom.cluster"},
		"a name too long":     {func(r request) { r.Spec.DisplayName = proto.String(long(257)) }, "displayName"},
		"a name with newline": {func(r request) { r.Spec.DisplayName = proto.String("a\nb") }, "displayName"},
		"a negative quota":    {func(r request) { r.Spec.Quota = &pb.Quota{DailyCalls: proto.Int64(-1)} }, "quota.dailyCalls"},
		"an unknown name":     {func(r request) { r.Spec.Parameters["pitch"] = "1" }, "parameters.pitch"},
		"a bad speed":         {func(r request) { r.Spec.Parameters["speed"] = "fast" }, "parameters.speed"},
		"a value too long":    {func(r request) { r.Spec.Parameters["voice"] = long(16385) }, "parameters.voice"},
		"too many parameters": {func(r request) {
			for i := range 65 {
				r.Spec.Parameters[long(i+1)] = ""
			}
		}, "parameters"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := b.client.Ensure(callContext(t), ensureRequest(row.change))
			expectRefusal(t, err, refusal{code: codes.InvalidArgument, reason: "INVALID_FIELD", fields: []string{row.field}})
		})
	}
	if left := b.speakers(t); len(left) != 0 {
		t.Errorf("refused requests have made %v", left)
	}
}

func TestTheLongestAllowedTextsAreAccepted(t *testing.T) {
	b := newBench(t, vendorOptions{})
	b.mustEnsure(t, pb.Change_CHANGE_CREATED, func(r *pb.EnsureRequest) {
		r.InstanceKey = "f/n/" + strings.Repeat("x", 378)
		r.Owner = &pb.Owner{Cluster: strings.Repeat("c", 253), Uid: strings.Repeat("u", 128)}
		r.SpecHash = strings.Repeat("h", 128)
		r.Spec.DisplayName = proto.String(strings.Repeat("ü", 256))
	})
}

func TestEndpointsAreHeldToTheList(t *testing.T) {
	b := newBench(t, vendorOptions{})
	for endpoint, isAllowed := range map[string]bool{
		"https://api.parrot.example":                true,
		"https://API.parrot.example/v1":             true,
		"https://eu.api.parrot.example:8443":        true,
		"http://api.parrot.example":                 false,
		"https://parrot.example":                    false,
		"https://api.parrot.example.evil.example":   false,
		"https://evilapi.parrot.example":            false,
		"https://user:s3cret@api.parrot.example":    false,
		"https://api.parrot.example?key=s3cret":     false,
		"https://api.parrot.example#f":              false,
		"https://api.parrot.example:0":              false,
		"https://evil.example\\@api.parrot.example": false,
		"https://127.0.0.1":                         false,
		"https://[::1]":                             false,
		"https://10.0.0.1/.api.parrot.example":      false,
		"https:///api.parrot.example":               false,
		"api.parrot.example":                        false,
		"ftp://api.parrot.example":                  false,
		"https://api.parrot.example/ a":             false,
	} {
		request := ensureRequest(func(r *pb.EnsureRequest) { r.Target.Endpoint = endpoint; r.ValidateOnly = true })
		_, err := b.client.Ensure(callContext(t), request)
		if isAllowed {
			if err != nil {
				t.Errorf("%s: %v", endpoint, err)
			}
			continue
		}
		expectRefusal(t, err, refusal{code: codes.InvalidArgument, reason: "ENDPOINT_NOT_ALLOWED", fields: []string{"endpoint"}})
	}
}

func TestAnUnknownAccountIsRefused(t *testing.T) {
	b := newBench(t, vendorOptions{})
	request := describeRequest()
	request.Target.Account = "third"
	_, err := b.client.Describe(callContext(t), request)
	expectRefusal(t, err, refusal{code: codes.InvalidArgument, reason: "UNKNOWN_ACCOUNT", fields: []string{"account"}})
}

func TestSpeedHasOneNotation(t *testing.T) {
	for value, want := range map[string]string{
		"1": "1", "1.0": "1", "1.00": "1", "1.50": "1.5", "0.5": "0.5", "2.0": "2",
		"0.4": "", "2.1": "", "": "", "1.": "", " 1": "", "1\n": "", "01": "", "1e0": "", "3": "",
	} {
		wrong := &mistakes{}
		got := checkParameters(map[string]string{"speed": value}, wrong)["speed"]
		if got != want || (len(wrong.list) == 0) != (want != "") {
			t.Errorf("speed %q is %q, want %q (%v)", value, got, want, wrong.list)
		}
	}
}

func TestRefusalsOfParametersAreInAFixedOrderAndRepeatNoValue(t *testing.T) {
	wrong := &mistakes{}
	given := map[string]string{"voice": "s3cret", "a": "s3cret", "language": "s3cret"}
	checkParameters(given, wrong)
	for i, name := range slices.Sorted(maps.Keys(given)) {
		if wrong.list[i].path != "parameters."+name || strings.Contains(wrong.list[i].description, "s3cret") {
			t.Errorf("%v, want %s", wrong.list[i], name)
		}
	}
}
