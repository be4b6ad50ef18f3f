package main

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	pb "digital-human-provider/examples/adapter-go/gen/dhp/provider/v1"
)

func (b *bench) listAll(t *testing.T, request *pb.ListRequest) (ids []string, pages int) {
	t.Helper()
	for pages = 1; pages <= 500; pages++ {
		response, err := b.client.List(callContext(t), request)
		if err != nil {
			t.Fatal(err)
		}
		for _, instance := range response.GetInstances() {
			ids = append(ids, instance.GetProviderId())
		}
		if response.GetNextPageToken() == "" {
			return ids, pages
		}
		request.PageToken = response.GetNextPageToken()
	}
	t.Fatal("the list does not end")
	return nil, 0
}

func TestListShowsEachStampedInstanceOnce(t *testing.T) {
	b := newBench(t, vendorOptions{})
	for i := range 250 {
		own := owner{cluster: fmt.Sprintf("c%d", i%2), uid: "u"}
		b.seed(t, speaker{Labels: makeStamp(fmt.Sprintf("f/n/%d", i), own, "").labels()})
	}
	b.seed(t, speaker{Name: "not ours"})
	for name, row := range map[string]struct {
		request    *pb.ListRequest
		ids, pages int
	}{
		"all":             {&pb.ListRequest{}, 250, 3},
		"all at once":     {&pb.ListRequest{PageSize: 5000}, 250, 1},
		"of one owner":    {&pb.ListRequest{OwnerCluster: proto.String("c1"), PageSize: 50}, 125, 3},
		"of nobody":       {&pb.ListRequest{OwnerCluster: proto.String("c")}, 0, 1},
		"one after other": {&pb.ListRequest{PageSize: 1}, 250, 250},
	} {
		row.request.Target = testTarget()
		ids, pages := b.listAll(t, row.request)
		seen := map[string]bool{}
		for _, id := range ids {
			seen[id] = true
		}
		if len(ids) != row.ids || len(seen) != row.ids || pages != row.pages {
			t.Errorf("%s: %d instances, %d of them different, on %d pages", name, len(ids), len(seen), pages)
		}
	}
}

func TestListLosesNothingWhileOthersComeAndGo(t *testing.T) {
	b := newBench(t, vendorOptions{})
	seed := func(name string) string {
		return b.seed(t, speaker{Labels: makeStamp("f/n/"+name, testOwner, "").labels()})
	}
	var stay []string
	var first string
	for i := range 10 {
		id := seed(fmt.Sprint(i))
		if i == 0 {
			first = id
			continue
		}
		stay = append(stay, id)
	}
	request := &pb.ListRequest{Target: testTarget(), PageSize: 4}
	response, err := b.client.List(callContext(t), request)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, instance := range response.GetInstances() {
		seen[instance.GetProviderId()] = true
	}
	if err := b.vendor.DeleteSpeaker(t.Context(), place{"acct-1", "eu"}, first); err != nil {
		t.Fatal(err)
	}
	seed("late")
	request.PageToken = response.GetNextPageToken()
	rest, _ := b.listAll(t, request)
	for _, id := range rest {
		if seen[id] {
			t.Errorf("%s is there twice", id)
		}
		seen[id] = true
	}
	for _, id := range stay {
		if !seen[id] {
			t.Errorf("%s is lost", id)
		}
	}
}

func TestAPageTokenIsGoodForItsQuestionOnly(t *testing.T) {
	b := newBench(t, vendorOptions{})
	for i := range 3 {
		b.seed(t, speaker{Labels: makeStamp(fmt.Sprintf("f/n/%d", i), testOwner, "").labels()})
	}
	response, err := b.client.List(callContext(t), &pb.ListRequest{Target: testTarget(), PageSize: 1})
	if err != nil {
		t.Fatal(err)
	}
	token := response.GetNextPageToken()
	us, second := testTarget(), testTarget()
	us.Region, second.Account = "us", "second"
	for name, request := range map[string]*pb.ListRequest{
		"made up":         {PageToken: "x"},
		"cut":             {PageToken: token[:len(token)-4]},
		"changed":         {PageToken: "A" + token[1:]},
		"of one owner":    {PageToken: token, OwnerCluster: proto.String("c1")},
		"another region":  {PageToken: token, Target: us},
		"another account": {PageToken: token, Target: second},
	} {
		if request.Target == nil {
			request.Target = testTarget()
		}
		_, err := b.client.List(callContext(t), request)
		if err == nil {
			t.Errorf("%s: accepted", name)
			continue
		}
		expectRefusal(t, err, refusal{code: codes.InvalidArgument, reason: "INVALID_FIELD", fields: []string{"page_token"}})
	}
	if _, err := b.client.List(callContext(t), &pb.ListRequest{Target: testTarget(), PageToken: token}); err != nil {
		t.Error(err)
	}
}

func TestListRefusesWhatItCannotRead(t *testing.T) {
	b := newBench(t, vendorOptions{})
	for field, request := range map[string]*pb.ListRequest{
		"page_size":     {Target: testTarget(), PageSize: -1},
		"owner_cluster": {Target: testTarget(), OwnerCluster: proto.String("")},
		"target":        {},
	} {
		_, err := b.client.List(callContext(t), request)
		expectRefusal(t, err, refusal{code: codes.InvalidArgument, reason: "INVALID_FIELD", fields: []string{field}})
	}
}

func TestListsOfTheVendorLagAsTold(t *testing.T) {
	lag := 10 * time.Second
	v := newVendor(vendorOptions{ListLag: lag})
	at := place{"acct-1", "eu"}
	id, err := v.CreateSpeaker(t.Context(), at, speaker{Name: "old"})
	if err != nil {
		t.Fatal(err)
	}
	made := time.Now()
	name := "new"
	if got := v.listed(at, made); len(got) != 0 {
		t.Errorf("at once: %v", got)
	}
	if got := v.listed(at, made.Add(lag)); len(got) != 1 || got[0].Name != "old" {
		t.Errorf("later: %v", got)
	}
	if err := v.UpdateSpeaker(t.Context(), at, id, speakerPatch{Name: &name}); err != nil {
		t.Fatal(err)
	}
	if got := v.listed(at, time.Now()); len(got) != 1 || got[0].Name != "old" {
		t.Errorf("after an update: %v", got)
	}
	if err := v.DeleteSpeaker(t.Context(), at, id); err != nil {
		t.Fatal(err)
	}
	if got := v.listed(at, time.Now()); len(got) != 1 || got[0].Name != "new" {
		t.Errorf("after a delete: %v", got)
	}
	if got := v.listed(at, time.Now().Add(lag)); len(got) != 0 || v.count != 0 {
		t.Errorf("at the end: %v, %d", got, v.count)
	}
}
