package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	pb "digital-human-provider/examples/adapter-go/gen/dhp/provider/v1"
)

const errorDomain = "dhp.example.com"

// Trailers have a limit, 8 KiB in some gRPC libraries.
const (
	detailBytesMax  = 4608
	messageBytesMax = 512
	textBytesMax    = 200
	identityMax     = 512
	violationsMax   = 8
)

// problem is the one error that crosses ProviderAPI: a reason of the contract's closed list, and all
// that a caller needs to act on it. The code follows from the reason.
type problem struct {
	reason        pb.ErrorReason
	code          codes.Code // only where a reason travels under two codes
	message       string
	outcome       pb.Outcome // unspecified: nothing was sent to the vendor
	providerID    string
	retryAfter    time.Duration
	fields        []violation
	preconditions []precondition
	owner         string
	realm         string
	resource      string
	quota         string
}

// violation is one refused field; path is within the Kubernetes spec where the value comes from there.
type violation struct{ path, description string }

type precondition struct {
	kind                 pb.PreconditionType
	subject, description string
}

func newProblem(reason pb.ErrorReason, format string, args ...any) *problem {
	return &problem{reason: reason, message: fmt.Sprintf(format, args...)}
}

func (p *problem) Error() string { return p.message }

// codeOfReason is the contract's table of errors.
var codeOfReason = map[pb.ErrorReason]codes.Code{
	pb.ErrorReason_ERROR_REASON_INVALID_FIELD:        codes.InvalidArgument,
	pb.ErrorReason_ERROR_REASON_UNKNOWN_ACCOUNT:      codes.InvalidArgument,
	pb.ErrorReason_ERROR_REASON_ENDPOINT_NOT_ALLOWED: codes.InvalidArgument,
	pb.ErrorReason_ERROR_REASON_NOT_FOUND:            codes.NotFound,
	pb.ErrorReason_ERROR_REASON_NOT_OURS:             codes.NotFound,
	pb.ErrorReason_ERROR_REASON_OWNED_BY_ANOTHER:     codes.AlreadyExists,
	pb.ErrorReason_ERROR_REASON_WRONG_REALM:          codes.FailedPrecondition,
	pb.ErrorReason_ERROR_REASON_IMMUTABLE_FIELD:      codes.FailedPrecondition,
	pb.ErrorReason_ERROR_REASON_UNSUPPORTED:          codes.Unimplemented,
	pb.ErrorReason_ERROR_REASON_BAD_CREDENTIAL:       codes.Unauthenticated,
	pb.ErrorReason_ERROR_REASON_MISSING_SCOPE:        codes.PermissionDenied,
	pb.ErrorReason_ERROR_REASON_THROTTLED:            codes.ResourceExhausted,
	pb.ErrorReason_ERROR_REASON_QUOTA_EXHAUSTED:      codes.ResourceExhausted,
	pb.ErrorReason_ERROR_REASON_BILLING_STOPPED:      codes.FailedPrecondition,
	pb.ErrorReason_ERROR_REASON_BUSY:                 codes.Aborted,
	pb.ErrorReason_ERROR_REASON_IN_DOUBT:             codes.Aborted,
	pb.ErrorReason_ERROR_REASON_TOO_LATE:             codes.Aborted,
	pb.ErrorReason_ERROR_REASON_VENDOR_UNREACHABLE:   codes.Unavailable,
	pb.ErrorReason_ERROR_REASON_VENDOR_TIMEOUT:       codes.DeadlineExceeded,
	pb.ErrorReason_ERROR_REASON_VENDOR_ERROR:         codes.Unavailable,
	pb.ErrorReason_ERROR_REASON_VENDOR_UNREADABLE:    codes.Unavailable,
	pb.ErrorReason_ERROR_REASON_CIRCUIT_OPEN:         codes.Unavailable,
	pb.ErrorReason_ERROR_REASON_CONTRACT_VERSION:     codes.Unimplemented,
	pb.ErrorReason_ERROR_REASON_SHUTTING_DOWN:        codes.Unavailable,
}

// classify is the table from the vendor's errors to the contract's. isMutation: the call may have
// changed something, so an error that says nothing about it leaves that open.
func classify(err error, isMutation bool) error {
	if err == nil {
		return nil
	}
	var refused *vendorError
	if !errors.As(err, &refused) {
		return unanswered(err, isMutation)
	}
	reason, isKnown := reasonOfVendorCode[refused.Code]
	if !isKnown {
		return unanswered(err, isMutation)
	}
	found := newProblem(reason, "%s", refused.Error())
	found.outcome = pb.Outcome_OUTCOME_NOT_APPLIED
	found.retryAfter = refused.RetryAfter
	switch reason {
	case pb.ErrorReason_ERROR_REASON_BUSY, pb.ErrorReason_ERROR_REASON_THROTTLED:
		found.retryAfter = max(found.retryAfter, time.Second)
	case pb.ErrorReason_ERROR_REASON_VENDOR_ERROR:
		found.outcome = outcomeOfSilence(isMutation)
	}
	return found
}

// reasonOfVendorCode leaves out what means something only to the code that asked (no_such_speaker of
// a read) and what the request checks should have seen.
var reasonOfVendorCode = map[string]pb.ErrorReason{
	// Of an update or delete: it went away between look and change. No statement that it is absent.
	vendorNoSuchSpeaker: pb.ErrorReason_ERROR_REASON_BUSY,
	vendorSpeakerBusy:   pb.ErrorReason_ERROR_REASON_BUSY,
	vendorBadValue:      pb.ErrorReason_ERROR_REASON_INVALID_FIELD,
	vendorTooManyCalls:  pb.ErrorReason_ERROR_REASON_THROTTLED,
	vendorSpeakerLimit:  pb.ErrorReason_ERROR_REASON_QUOTA_EXHAUSTED,
	vendorUnknownKey:    pb.ErrorReason_ERROR_REASON_BAD_CREDENTIAL,
	vendorNotAllowed:    pb.ErrorReason_ERROR_REASON_MISSING_SCOPE,
	vendorUnpaid:        pb.ErrorReason_ERROR_REASON_BILLING_STOPPED,
	vendorTrouble:       pb.ErrorReason_ERROR_REASON_VENDOR_ERROR,
}

// unanswered: the vendor said nothing that can be understood.
func unanswered(err error, isMutation bool) *problem {
	reason := pb.ErrorReason_ERROR_REASON_VENDOR_UNREADABLE
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		reason = pb.ErrorReason_ERROR_REASON_VENDOR_TIMEOUT
	}
	silent := newProblem(reason, "no usable answer from the vendor: %v", err)
	silent.outcome = outcomeOfSilence(isMutation)
	return silent
}

func outcomeOfSilence(isMutation bool) pb.Outcome {
	if isMutation {
		return pb.Outcome_OUTCOME_UNKNOWN
	}
	return pb.Outcome_OUTCOME_NOT_APPLIED
}

// saysAbsent: the vendor attests that the speaker does not exist.
func saysAbsent(err error) bool {
	var refused *vendorError
	return errors.As(err, &refused) && refused.Code == vendorNoSuchSpeaker
}

// GRPCStatus is what the gRPC library sends. The most needed details come first: what does not fit
// into the trailers is dropped from the end.
func (p *problem) GRPCStatus() *status.Status {
	code := p.code
	if code == codes.OK {
		code = codeOfReason[p.reason]
	}
	sent := &spb.Status{Code: int32(code), Message: cutText(p.message, messageBytesMax)}
	for _, detail := range p.details() {
		packed, err := anypb.New(protoadapt.MessageV2Of(detail))
		if err != nil {
			panic(err) // our own messages always encode
		}
		sent.Details = append(sent.Details, packed)
	}
	for len(sent.Details) > 1 && proto.Size(sent) > detailBytesMax {
		sent.Details = sent.Details[:len(sent.Details)-1]
	}
	return status.FromProto(sent)
}

func (p *problem) details() []protoadapt.MessageV1 {
	info := &errdetails.ErrorInfo{Reason: reasonName(p.reason), Domain: errorDomain}
	if realm := wholeText(p.realm); realm != "" {
		info.Metadata = map[string]string{"realm": realm}
	}
	details := []protoadapt.MessageV1{info, p.outcomeDetail()}
	if p.retryAfter > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(p.retryAfter)})
	}
	if quota := p.quotaText(); quota != "" {
		details = append(details, &errdetails.QuotaFailure{Violations: []*errdetails.QuotaFailure_Violation{
			{Subject: wholeText(p.realm), Description: cutText(quota, textBytesMax)},
		}})
	}
	if p.resource != "" || p.owner != "" {
		details = append(details, p.resourceDetail())
	}
	if preconditions := p.allPreconditions(); len(preconditions) > 0 {
		details = append(details, preconditionDetail(preconditions))
	}
	if len(p.fields) > 0 {
		details = append(details, fieldDetail(p.fields))
	}
	return details
}

func (p *problem) outcomeDetail() *pb.MutationOutcome {
	outcome := &pb.MutationOutcome{Outcome: p.outcome}
	if p.outcome == pb.Outcome_OUTCOME_UNSPECIFIED {
		outcome.Outcome = pb.Outcome_OUTCOME_NOT_APPLIED
	}
	if id := wholeText(p.providerID); id != "" {
		outcome.ProviderId = &id
	}
	return outcome
}

func (p *problem) quotaText() string {
	switch {
	case p.quota != "":
		return p.quota
	case p.reason == pb.ErrorReason_ERROR_REASON_THROTTLED:
		return "call rate"
	case p.reason == pb.ErrorReason_ERROR_REASON_QUOTA_EXHAUSTED:
		return "quota"
	default:
		return ""
	}
}

// allPreconditions adds what follows from the reason alone.
func (p *problem) allPreconditions() []precondition {
	switch {
	case len(p.preconditions) > 0:
		return p.preconditions
	case p.reason == pb.ErrorReason_ERROR_REASON_BILLING_STOPPED:
		return []precondition{{pb.PreconditionType_PRECONDITION_TYPE_BILLING, p.realm, p.message}}
	default:
		return nil
	}
}

func (p *problem) resourceDetail() *errdetails.ResourceInfo {
	kind := "instance"
	if p.reason == pb.ErrorReason_ERROR_REASON_UNSUPPORTED {
		kind = "capability"
	}
	return &errdetails.ResourceInfo{
		ResourceType: kind,
		ResourceName: wholeText(p.resource),
		Owner:        wholeText(p.owner),
	}
}

func preconditionDetail(preconditions []precondition) *errdetails.PreconditionFailure {
	detail := &errdetails.PreconditionFailure{}
	for _, one := range preconditions[:min(len(preconditions), violationsMax)] {
		detail.Violations = append(detail.Violations, &errdetails.PreconditionFailure_Violation{
			Type:        strings.TrimPrefix(one.kind.String(), "PRECONDITION_TYPE_"),
			Subject:     cutText(one.subject, textBytesMax),
			Description: cutText(one.description, textBytesMax),
		})
	}
	return detail
}

func fieldDetail(fields []violation) *errdetails.BadRequest {
	detail := &errdetails.BadRequest{}
	for _, one := range fields[:min(len(fields), violationsMax)] {
		detail.FieldViolations = append(detail.FieldViolations, &errdetails.BadRequest_FieldViolation{
			Field:       cutText(one.path, textBytesMax),
			Description: cutText(one.description, textBytesMax),
		})
	}
	return detail
}

func reasonName(reason pb.ErrorReason) string {
	return strings.TrimPrefix(reason.String(), "ERROR_REASON_")
}

// cutText cuts at a character's end.
func cutText(text string, bytesMax int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= bytesMax {
		return text
	}
	end := bytesMax - len("...")
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "..."
}

// wholeText: ids are compared, so half of one would be a lie. Too long means absent.
func wholeText(text string) string {
	if len(text) > identityMax {
		return ""
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}
