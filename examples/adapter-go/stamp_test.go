package main

import (
	"encoding/json"
	"os"
	"testing"
)

// The TypeScript host is tested against the same file: both must find each other's instances.
func TestStampsAreThoseOfTheOtherAdapters(t *testing.T) {
	content, err := os.ReadFile("testdata/stamps.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []struct{ Key, Cluster, Short string }
	if err := json.Unmarshal(content, &rows); err != nil || len(rows) == 0 {
		t.Fatal("no rows", err)
	}
	for _, row := range rows {
		made := makeStamp(row.Key, owner{cluster: row.Cluster}, "")
		if made.short != row.Short {
			t.Errorf("stamp of %q at %q is %s, want %s", row.Key, row.Cluster, made.short, row.Short)
		}
		read := stampOf(map[string]string{labelShort: row.Short})
		if read == nil || read.keyShort != made.keyShort {
			t.Errorf("%s reads back as %v", row.Short, read)
		}
	}
}

func TestWhatIsNoStampIsNone(t *testing.T) {
	short := makeStamp(testKey, testOwner, "").short
	for _, text := range []string{"", short[:len(short)-1], short + "x", "DHP-" + short[4:]} {
		if found := stampOf(map[string]string{labelShort: text}); found != nil {
			t.Errorf("%q is read as %v", text, found)
		}
	}
}

func TestWhoseAnInstanceIs(t *testing.T) {
	mine := makeStamp(testKey, testOwner, "h")
	with := func(change func(*stamp)) *stamp { other := mine; change(&other); return &other }
	another := makeStamp(testKey, owner{"c2", "u1"}, "")
	otherKey := makeStamp("fleet/ns/other", testOwner, "")
	for name, row := range map[string]struct {
		found *stamp
		want  ownership
	}{
		"ours":                      {&mine, ours},
		"ours, another hash":        {with(func(s *stamp) { s.specHash = "x" }), ours},
		"ours by short form":        {&stamp{keyShort: mine.keyShort, short: mine.short}, ours},
		"an earlier object's":       {with(func(s *stamp) { s.owner.uid = "u0" }), predecessor},
		"another cluster's":         {&another, foreign},
		"another's by short form":   {&stamp{keyShort: mine.keyShort, short: another.short}, foreign},
		"another key's":             {&otherKey, foreign},
		"a key's of the same stamp": {with(func(s *stamp) { s.key = "fleet/ns/collision" }), foreign},
		"nobody's":                  {nil, unowned},
	} {
		if got := ownershipOf(row.found, mine); got != row.want {
			t.Errorf("%s: %v, want %v", name, got, row.want)
		}
	}
}
