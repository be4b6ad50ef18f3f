package main

import (
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"google.golang.org/protobuf/types/known/timestamppb"

	pb "digital-human-provider/examples/adapter-go/gen/dhp/provider/v1"
)

// Longest texts, in bytes of UTF-8 but for the display name, which Kubernetes counts in characters.
const (
	instanceKeyMax           = 382
	clusterMax               = 253
	uidMax                   = 128
	endpointMax              = 2048
	regionMax                = 63
	accountMax               = 253
	displayNameCharactersMax = 256
	displayNameBytesMax      = 512 // the vendor's
	parametersMax            = 64
	parameterNameMax         = 253
	parameterMax             = 16384
	specHashMax              = 128
	providerIDMax            = 1024
	realmMax                 = 1024
	pageTokenMax             = 8192
	targetsMax               = 1000
	quotaMax                 = 1<<53 - 1
)

// account is what a target may name: an account at the vendor and the hosts its key may be shown to.
// A real adapter has its credential here, read anew from a file for each call.
type account struct {
	vendorAccount string
	hosts         []string // exact, or "*.suffix"
}

const defaultAccount = "default"

// checker turns requests into questions that the rest can rely on. Nothing in it touches the vendor.
type checker struct {
	accounts map[string]account
	regions  []string
}

// site is a checked target.
type site struct {
	target *pb.Target
	place  place
	realm  string
}

// question is a checked request about one instance.
type question struct {
	site
	key      string
	owner    owner
	recorded *pb.Recorded
	notAfter time.Time // zero: the caller named none
}

// wantedSpeaker is the spec, in the notation in which equal means equal.
type wantedSpeaker struct {
	displayName *string
	parameters  map[string]string
}

type ensureQuestion struct {
	question
	wanted         wantedSpeaker
	stamp          stamp
	mayCreate      bool
	isValidateOnly bool
	adopt          *pb.Adopt
}

type instanceRequest interface {
	GetInstanceKey() string
	GetOwner() *pb.Owner
	GetTarget() *pb.Target
	GetRecorded() *pb.Recorded
}

type removalRequest interface {
	instanceRequest
	GetNotAfter() *timestamppb.Timestamp
}

// instance checks Describe, and what Delete and Release have in common with it.
func (c *checker) instance(request instanceRequest) (question, error) {
	wrong := &mistakes{}
	instanceMistakes(request, wrong)
	return c.question(request, wrong)
}

// removal checks Delete and Release.
func (c *checker) removal(request removalRequest) (question, error) {
	asked, err := c.instance(request)
	asked.notAfter = instantOf(request.GetNotAfter())
	return asked, err
}

func (c *checker) ensure(request *pb.EnsureRequest) (ensureQuestion, error) {
	wrong := &mistakes{}
	instanceMistakes(request, wrong)
	if request.GetOwner().GetUid() == "" {
		wrong.add("owner.uid", "is required")
	}
	wrong.optional("spec_hash", request.GetSpecHash(), specHashMax)
	if request.GetSpec() == nil {
		wrong.add("spec", "is required")
	}
	if adopt := request.GetAdopt(); adopt != nil {
		adoptMistakes(adopt, wrong)
	}
	wanted := checkSpec(request.GetSpec(), wrong)
	asked, err := c.question(request, wrong)
	if err != nil {
		return ensureQuestion{}, err
	}
	asked.notAfter = instantOf(request.GetNotAfter())
	return ensureQuestion{
		question:       asked,
		wanted:         wanted,
		stamp:          makeStamp(asked.key, asked.owner, request.GetSpecHash()),
		mayCreate:      request.GetMayCreate(),
		isValidateOnly: request.GetValidateOnly(),
		adopt:          request.GetAdopt(),
	}, nil
}

// question says all mistakes of the instance and its spec first, then those of the target.
func (c *checker) question(request instanceRequest, wrong *mistakes) (question, error) {
	if err := wrong.refusal(); err != nil {
		return question{}, err
	}
	at, err := c.site(request.GetTarget())
	if err != nil {
		return question{}, err
	}
	return question{
		site:     at,
		key:      request.GetInstanceKey(),
		owner:    ownerOf(request.GetOwner()),
		recorded: request.GetRecorded(),
	}, nil
}

// wantedSpec checks the spec that a Describe compares with; nil where it carries none.
func wantedSpec(spec *pb.InstanceSpec) (*wantedSpeaker, error) {
	if spec == nil {
		return nil, nil
	}
	wrong := &mistakes{}
	wanted := checkSpec(spec, wrong)
	return &wanted, wrong.refusal()
}

// site checks account, endpoint and region.
func (c *checker) site(target *pb.Target) (site, error) {
	wrong := &mistakes{}
	if target == nil {
		wrong.add("target", "is required")
	}
	wrong.required("endpoint", target.GetEndpoint(), endpointMax)
	wrong.optional("region", target.GetRegion(), regionMax)
	wrong.optional("account", target.GetAccount(), accountMax)
	if !slices.Contains(c.regions, target.GetRegion()) {
		wrong.add("region", "is none of "+strings.Join(c.regions, ", "))
	}
	if err := wrong.refusal(); err != nil {
		return site{}, err
	}
	name := target.GetAccount()
	if name == "" {
		name = defaultAccount
	}
	known, isKnown := c.accounts[name]
	if !isKnown {
		unknown := newProblem(pb.ErrorReason_ERROR_REASON_UNKNOWN_ACCOUNT, "account %q is not known here", name)
		unknown.fields = []violation{{"account", "is no account of this adapter"}}
		return site{}, unknown
	}
	if why := endpointFault(target.GetEndpoint(), known.hosts); why != "" {
		refused := newProblem(pb.ErrorReason_ERROR_REASON_ENDPOINT_NOT_ALLOWED, "endpoint %s", why)
		refused.fields = []violation{{"endpoint", why}}
		return site{}, refused
	}
	return site{
		target: &pb.Target{Endpoint: target.GetEndpoint(), Region: target.GetRegion(), Account: name},
		place:  place{Account: known.vendorAccount, Region: target.GetRegion()},
		realm:  "parrot:" + known.vendorAccount + ":" + target.GetRegion(),
	}, nil
}

var endpointPattern = regexp.MustCompile(`^(?i:[a-z]+)://[^/\\]+(/[^\\]*)?$`)

// endpointFault says why an endpoint may not be used; empty: it may. The text itself is never
// repeated: it may carry a password.
func endpointFault(endpoint string, hosts []string) string {
	parsed, err := url.Parse(endpoint)
	switch {
	case err != nil:
		return "is not a URL"
	case parsed.User != nil:
		return "must not carry user or password"
	case strings.ContainsAny(endpoint, "?# \t\r\n"):
		return "must not carry a query, a fragment or spaces"
	case !endpointPattern.MatchString(endpoint) || parsed.Hostname() == "":
		return "is not of the form https://HOST/PATH"
	case parsed.Port() == "0":
		return "must not have port 0"
	case !strings.EqualFold(parsed.Scheme, "https"):
		return "must be https"
	}
	// No account of this vendor is reached by address, so none inside our own network can be.
	host := strings.ToLower(strings.TrimSuffix(parsed.Hostname(), "."))
	_, notAddress := netip.ParseAddr(host)
	if notAddress == nil || !slices.ContainsFunc(hosts, func(pattern string) bool { return hostMatches(pattern, host) }) {
		return "host is not on the account's list"
	}
	return ""
}

func hostMatches(pattern, host string) bool {
	pattern = strings.ToLower(pattern)
	if suffix, isWild := strings.CutPrefix(pattern, "*"); isWild {
		return strings.HasSuffix(host, suffix)
	}
	return pattern == host
}

var instanceKeyPattern = regexp.MustCompile(`^[^/]+/[^/]+/[^/]+$`)

func instanceMistakes(request instanceRequest, wrong *mistakes) {
	key := request.GetInstanceKey()
	wrong.required("instance_key", key, instanceKeyMax)
	if key != "" && !instanceKeyPattern.MatchString(key) {
		wrong.add("instance_key", "is not of the form fleet/namespace/name")
	}
	wrong.required("owner.cluster", request.GetOwner().GetCluster(), clusterMax)
	wrong.optional("owner.uid", request.GetOwner().GetUid(), uidMax)
	wrong.optional("recorded.provider_id", request.GetRecorded().GetProviderId(), providerIDMax)
	wrong.optional("recorded.realm", request.GetRecorded().GetRealm(), realmMax)
}

func adoptMistakes(adopt *pb.Adopt, wrong *mistakes) {
	wrong.required("adopt.providerID", adopt.GetProviderId(), providerIDMax)
	if from := adopt.GetTakeOverFrom(); from != nil {
		wrong.required("adopt.takeOverFrom.cluster", from.GetCluster(), clusterMax)
		wrong.required("adopt.takeOverFrom.uid", from.GetUid(), uidMax)
	}
}

func checkSpec(spec *pb.InstanceSpec, wrong *mistakes) wantedSpeaker {
	if spec != nil && spec.DisplayName != nil {
		displayNameMistakes(spec.GetDisplayName(), wrong)
	}
	quotaMistakes(spec.GetQuota(), wrong)
	given := spec.GetParameters()
	if len(given) > parametersMax {
		wrong.add("parameters", fmt.Sprintf("has more than %d entries", parametersMax))
		return wantedSpeaker{}
	}
	for name, value := range given {
		if len(name) > parameterNameMax {
			wrong.add("parameters", fmt.Sprintf("has a name of more than %d bytes", parameterNameMax))
			return wantedSpeaker{}
		}
		if len(value) > parameterMax {
			wrong.add("parameters."+name, fmt.Sprintf("is longer than %d bytes", parameterMax))
		}
	}
	wanted := wantedSpeaker{parameters: checkParameters(given, wrong)}
	if spec != nil {
		wanted.displayName = spec.DisplayName
	}
	return wanted
}

func displayNameMistakes(name string, wrong *mistakes) {
	switch {
	case utf8.RuneCountInString(name) > displayNameCharactersMax:
		wrong.add("displayName", fmt.Sprintf("is longer than %d characters", displayNameCharactersMax))
	case len(name) > displayNameBytesMax:
		wrong.add("displayName", fmt.Sprintf("is longer than this vendor's %d bytes", displayNameBytesMax))
	case strings.ContainsFunc(name, unicode.IsControl):
		wrong.add("displayName", "has control characters")
	}
}

// quotaMistakes: this vendor keeps no quota of ours (no QUOTA_SETTABLE), so only nonsense is refused.
func quotaMistakes(quota *pb.Quota, wrong *mistakes) {
	limits := []struct {
		path  string
		value int64
	}{
		{"quota.maxConcurrency", quota.GetMaxConcurrency()},
		{"quota.dailyCalls", quota.GetDailyCalls()},
		{"quota.monthlyCredits", quota.GetMonthlyCredits()},
	}
	for _, limit := range limits {
		if limit.value < 0 || limit.value > quotaMax {
			wrong.add(limit.path, "is negative or too large")
		}
	}
}

// mistakes collects what is wrong with a request, to say all of it at once.
type mistakes struct{ list []violation }

func (m *mistakes) add(path, description string) {
	m.list = append(m.list, violation{path, description})
}

func (m *mistakes) required(path, value string, bytesMax int) {
	if value == "" {
		m.add(path, "is required")
		return
	}
	m.optional(path, value, bytesMax)
}

func (m *mistakes) optional(path, value string, bytesMax int) {
	if len(value) > bytesMax {
		m.add(path, fmt.Sprintf("is longer than %d bytes", bytesMax))
	} else if strings.ContainsFunc(value, unicode.IsControl) {
		m.add(path, "has control characters")
	}
}

// refusal is nil where there are none.
func (m *mistakes) refusal() error {
	if len(m.list) == 0 {
		return nil
	}
	words := make([]string, len(m.list))
	for i, one := range m.list {
		words[i] = one.path + " " + one.description
	}
	refused := newProblem(pb.ErrorReason_ERROR_REASON_INVALID_FIELD, "%s", strings.Join(words, "; "))
	refused.fields = m.list
	return refused
}

func ownerOf(message *pb.Owner) owner {
	return owner{cluster: message.GetCluster(), uid: message.GetUid()}
}

func instantOf(timestamp *timestamppb.Timestamp) time.Time {
	if timestamp == nil {
		return time.Time{}
	}
	return timestamp.AsTime()
}
