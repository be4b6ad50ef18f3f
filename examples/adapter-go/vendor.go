package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// This file is the vendor, not the adapter: Parrot, a make-believe maker of speakers that lives in the
// memory of this process. It knows nothing of Kubernetes or of the contract. A real adapter has an
// HTTP client of its vendor in its place; everything else of this folder stays.

// speaker is one instance, in the vendor's words.
type speaker struct {
	ID        string
	Name      string
	Voice     string
	Speed     float64
	Language  string // fixed once it is made
	Labels    map[string]string
	CreatedAt time.Time
	Status    string // one of the constants below
}

const (
	speakerStarting = "starting"
	speakerOnline   = "online"
	speakerRemoving = "removing"
)

// place is one account in one of the vendor's regions; ids mean something within one place only.
type place struct{ Account, Region string }

// vendorError is what the vendor's API answers when it refuses.
type vendorError struct {
	Code       string
	Text       string
	RetryAfter time.Duration
}

func (e *vendorError) Error() string { return fmt.Sprintf("parrot says %s: %s", e.Code, e.Text) }

// The vendor's error codes.
const (
	vendorNoSuchSpeaker  = "no_such_speaker"
	vendorBadValue       = "bad_value"
	vendorTooManyCalls   = "too_many_calls"
	vendorSpeakerLimit   = "speaker_limit"
	vendorUnknownKey     = "unknown_key"
	vendorNotAllowed     = "not_allowed"
	vendorUnpaid         = "unpaid"
	vendorSpeakerBusy    = "speaker_busy"
	vendorTrouble        = "internal_trouble"
	speakersMax          = 100_000
	vendorPageMax        = 100
	defaultVendorVoice   = "alto"
	defaultVendorSpeed   = 1.0
	defaultVendorTongue  = "en"
	speakerIDRandomBytes = 9
)

// vendorOptions make it as slow and as late as vendors are.
type vendorOptions struct {
	Delay      time.Duration // of each call: half of it before the vendor acts, half after
	ListLag    time.Duration // lists show what was so long ago
	CreateTime time.Duration // how long a new speaker is starting
	RemoveTime time.Duration // how long a deleted speaker is removing
	File       string        // where speakers outlive the process; empty: nowhere
}

type vendor struct {
	options vendorOptions
	// fault, where set, answers in place of a call. For tests.
	fault func(call string) error

	mu      sync.Mutex
	records map[place]map[string]*record
	count   int
}

// record is a speaker with what lists still show of it.
type record struct {
	Now       speaker
	RemovedAt time.Time // zero: it was not removed
	Before    *speaker  // what it was before the latest change; nil: not there
	ChangedAt time.Time
}

func newVendor(options vendorOptions) *vendor {
	return &vendor{options: options, records: map[place]map[string]*record{}}
}

// CreateSpeaker makes a new one on each call: the vendor knows nothing of repeated requests.
func (v *vendor) CreateSpeaker(ctx context.Context, at place, draft speaker) (string, error) {
	id := newSpeakerID()
	err := v.call(ctx, "create", func(now time.Time) error {
		if v.count >= speakersMax {
			return &vendorError{Code: vendorSpeakerLimit, Text: "the account has too many speakers"}
		}
		made := draft
		made.ID, made.CreatedAt, made.Labels = id, now.Round(0), map[string]string{}
		maps.Copy(made.Labels, draft.Labels)
		made.Voice = cmp.Or(made.Voice, defaultVendorVoice)
		made.Speed = cmp.Or(made.Speed, defaultVendorSpeed)
		made.Language = cmp.Or(made.Language, defaultVendorTongue)
		if v.records[at] == nil {
			v.records[at] = map[string]*record{}
		}
		v.records[at][id] = &record{Now: made, ChangedAt: now}
		v.count++
		return nil
	})
	return id, err
}

// GetSpeaker is up to date always.
func (v *vendor) GetSpeaker(ctx context.Context, at place, id string) (speaker, error) {
	var found speaker
	err := v.call(ctx, "get", func(now time.Time) error {
		known, err := v.find(at, id, now)
		if err != nil {
			return err
		}
		found = v.shown(known, now)
		return nil
	})
	return found, err
}

// speakerPatch changes what is not nil. Labels of the patch are set, or taken off where empty.
type speakerPatch struct {
	Name     *string
	Voice    *string
	Speed    *float64
	Language *string
	Labels   map[string]string
}

func (v *vendor) UpdateSpeaker(ctx context.Context, at place, id string, patch speakerPatch) error {
	return v.call(ctx, "update", func(now time.Time) error {
		known, err := v.find(at, id, now)
		if err != nil {
			return err
		}
		if !known.RemovedAt.IsZero() {
			return &vendorError{Code: vendorSpeakerBusy, Text: "it is being removed"}
		}
		if patch.Language != nil && *patch.Language != known.Now.Language {
			return &vendorError{Code: vendorBadValue, Text: "language cannot be changed"}
		}
		known.change(now, func(s *speaker) {
			setIf(&s.Name, patch.Name)
			setIf(&s.Voice, patch.Voice)
			setIf(&s.Speed, patch.Speed)
			for name, value := range patch.Labels {
				if value == "" {
					delete(s.Labels, name)
				} else {
					s.Labels[name] = value
				}
			}
		})
		return nil
	})
}

func (v *vendor) DeleteSpeaker(ctx context.Context, at place, id string) error {
	return v.call(ctx, "delete", func(now time.Time) error {
		known, err := v.find(at, id, now)
		if err != nil {
			return err
		}
		if known.RemovedAt.IsZero() {
			known.change(now, func(*speaker) {})
			known.RemovedAt = now
		}
		return nil
	})
}

// speakerQuery asks for speakers with a label; value "": with any value.
type speakerQuery struct {
	Label, Value string
	PageSize     int // at most vendorPageMax
	PageToken    string
}

type speakerPage struct {
	Speakers  []speaker
	NextToken string
}

// ListSpeakers lists the oldest first. A page begins after the last speaker of the one before, so
// nothing is lost or shown twice when others come and go.
func (v *vendor) ListSpeakers(ctx context.Context, at place, query speakerQuery) (speakerPage, error) {
	var page speakerPage
	err := v.call(ctx, "list", func(now time.Time) error {
		after, err := readVendorToken(query.PageToken)
		if err != nil {
			return err
		}
		for _, shown := range v.listed(at, now) {
			value, has := shown.Labels[query.Label]
			if has && (query.Value == "" || value == query.Value) && after.isBefore(shown) {
				page.Speakers = append(page.Speakers, shown)
			}
		}
		slices.SortFunc(page.Speakers, byAge)
		if size := min(max(query.PageSize, 1), vendorPageMax); len(page.Speakers) > size {
			page.Speakers = page.Speakers[:size]
			page.NextToken = writeVendorToken(page.Speakers[size-1])
		}
		return nil
	})
	return page, err
}

func byAge(left, right speaker) int {
	return cmp.Or(left.CreatedAt.Compare(right.CreatedAt), cmp.Compare(left.ID, right.ID))
}

// call is one request: what happens at the vendor happens in one instant between two waits.
func (v *vendor) call(ctx context.Context, name string, act func(now time.Time) error) error {
	if err := pause(ctx, v.options.Delay/2); err != nil {
		return err
	}
	if err := v.answer(name, act); err != nil {
		return err
	}
	return pause(ctx, v.options.Delay/2)
}

func (v *vendor) answer(name string, act func(now time.Time) error) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.fault != nil {
		if err := v.fault(name); err != nil {
			return err
		}
	}
	if err := act(time.Now()); err != nil {
		return err
	}
	return v.save(name)
}

func (v *vendor) find(at place, id string, now time.Time) (*record, error) {
	known := v.records[at][id]
	if known == nil || v.isGone(known, now) {
		return nil, &vendorError{Code: vendorNoSuchSpeaker, Text: "there is no such speaker"}
	}
	return known, nil
}

func (v *vendor) isGone(known *record, now time.Time) bool {
	return !known.RemovedAt.IsZero() && now.Sub(known.RemovedAt) >= v.options.RemoveTime
}

func (v *vendor) shown(known *record, now time.Time) speaker {
	shown := known.Now
	shown.Labels = maps.Clone(shown.Labels)
	switch {
	case !known.RemovedAt.IsZero():
		shown.Status = speakerRemoving
	case now.Sub(shown.CreatedAt) < v.options.CreateTime:
		shown.Status = speakerStarting
	default:
		shown.Status = speakerOnline
	}
	return shown
}

// listed is what lists show now, and forgets what they no longer show.
func (v *vendor) listed(at place, now time.Time) []speaker {
	var speakers []speaker
	for id, known := range v.records[at] {
		isLate := now.Sub(known.ChangedAt) < v.options.ListLag
		switch {
		case isLate && known.Before != nil:
			before := *known.Before
			before.Status = speakerOnline
			speakers = append(speakers, before)
		case isLate:
		case v.isGone(known, now):
			delete(v.records[at], id)
			v.count--
		default:
			speakers = append(speakers, v.shown(known, now))
		}
	}
	return speakers
}

func (r *record) change(now time.Time, apply func(*speaker)) {
	before := r.Now
	r.Before, r.ChangedAt = &before, now
	r.Now.Labels = maps.Clone(r.Now.Labels)
	apply(&r.Now)
}

func setIf[T any](field *T, value *T) {
	if value != nil {
		*field = *value
	}
}

func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

func newSpeakerID() string {
	random := make([]byte, speakerIDRandomBytes)
	_, _ = rand.Read(random) // never fails: it ends the process first
	return "spk_" + base64.RawURLEncoding.EncodeToString(random)
}

// vendorToken is the place of the last speaker of a page; the zero value is before all.
type vendorToken struct {
	CreatedAt time.Time `json:"t"`
	ID        string    `json:"i"`
}

func (t vendorToken) isBefore(s speaker) bool {
	return t.ID == "" || byAge(speaker{CreatedAt: t.CreatedAt, ID: t.ID}, s) < 0
}

func writeVendorToken(last speaker) string {
	encoded, err := json.Marshal(vendorToken{CreatedAt: last.CreatedAt, ID: last.ID})
	if err != nil {
		panic(err) // a time and a text are always JSON
	}
	return string(encoded)
}

func readVendorToken(token string) (vendorToken, error) {
	var after vendorToken
	if token == "" {
		return after, nil
	}
	if err := json.Unmarshal([]byte(token), &after); err != nil {
		return after, &vendorError{Code: vendorBadValue, Text: "page token"}
	}
	return after, nil
}
