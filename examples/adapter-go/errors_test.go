package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "digital-human-provider/examples/adapter-go/gen/dhp/provider/v1"
)

func TestEveryReasonHasACode(t *testing.T) {
	for number, name := range pb.ErrorReason_name {
		_, has := codeOfReason[pb.ErrorReason(number)]
		if has != (number != 0) {
			t.Errorf("%s: %v", name, has)
		}
	}
}

// What the vendor says to an update, and what the caller must get.
func TestTheTableOfTheVendorsErrors(t *testing.T) {
	unknown, notApplied := pb.Outcome_OUTCOME_UNKNOWN, pb.Outcome_OUTCOME_NOT_APPLIED
	for name, row := range map[string]struct {
		err  error
		want refusal
	}{
		"gone meanwhile": {&vendorError{Code: vendorNoSuchSpeaker}, refusal{code: codes.Aborted, reason: "BUSY", outcome: notApplied, retries: true}},
		"busy":           {&vendorError{Code: vendorSpeakerBusy}, refusal{code: codes.Aborted, reason: "BUSY", outcome: notApplied, retries: true}},
		"bad value":      {&vendorError{Code: vendorBadValue}, refusal{code: codes.InvalidArgument, reason: "INVALID_FIELD", outcome: notApplied}},
		"throttled":      {&vendorError{Code: vendorTooManyCalls, RetryAfter: time.Minute}, refusal{code: codes.ResourceExhausted, reason: "THROTTLED", outcome: notApplied, retries: true}},
		"no hint":        {&vendorError{Code: vendorTooManyCalls}, refusal{code: codes.ResourceExhausted, reason: "THROTTLED", outcome: notApplied, retries: true}},
		"limit":          {&vendorError{Code: vendorSpeakerLimit}, refusal{code: codes.ResourceExhausted, reason: "QUOTA_EXHAUSTED", outcome: notApplied}},
		"bad key":        {&vendorError{Code: vendorUnknownKey}, refusal{code: codes.Unauthenticated, reason: "BAD_CREDENTIAL", outcome: notApplied}},
		"not allowed":    {&vendorError{Code: vendorNotAllowed}, refusal{code: codes.PermissionDenied, reason: "MISSING_SCOPE", outcome: notApplied}},
		"unpaid":         {&vendorError{Code: vendorUnpaid}, refusal{code: codes.FailedPrecondition, reason: "BILLING_STOPPED", outcome: notApplied, types: []string{"BILLING"}}},
		"trouble":        {&vendorError{Code: vendorTrouble}, refusal{code: codes.Unavailable, reason: "VENDOR_ERROR", outcome: unknown}},
		"unheard of":     {&vendorError{Code: "teapot"}, refusal{code: codes.Unavailable, reason: "VENDOR_UNREADABLE", outcome: unknown}},
		"reset":          {errors.New("connection reset"), refusal{code: codes.Unavailable, reason: "VENDOR_UNREADABLE", outcome: unknown}},
		"too slow":       {context.DeadlineExceeded, refusal{code: codes.DeadlineExceeded, reason: "VENDOR_TIMEOUT", outcome: unknown}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, vendorOptions{})
			b.mustEnsure(t, pb.Change_CHANGE_CREATED)
			b.vendor.fault = func(call string) error {
				if call == "update" {
					return row.err
				}
				return nil
			}
			renamed := func(r *pb.EnsureRequest) { r.Spec.DisplayName = proto.String("second") }
			_, err := b.client.Ensure(callContext(t), ensureRequest(renamed))
			expectRefusal(t, err, row.want)
			outcome := detailOf[*pb.MutationOutcome](status.Convert(err))
			if outcome.GetProviderId() == "" {
				t.Error("does not name the instance")
			}
			quota := detailOf[*errdetails.QuotaFailure](status.Convert(err))
			if isQuota := row.want.code == codes.ResourceExhausted; isQuota != (quota != nil) {
				t.Errorf("QuotaFailure %v", quota)
			}
		})
	}
}

func TestNothingButTheVendorsWordBecomesNotFound(t *testing.T) {
	b := newBench(t, vendorOptions{})
	for code := range reasonOfVendorCode {
		if code == vendorNoSuchSpeaker {
			continue
		}
		b.vendor.fault = func(string) error { return &vendorError{Code: code} }
		_, err := b.client.Describe(callContext(t), describeRequest())
		if got := status.Code(err); got == codes.NotFound || got == codes.OK {
			t.Errorf("%s becomes %v", code, got)
		}
		_, err = b.client.Delete(callContext(t), deleteRequest())
		if got := status.Code(err); got == codes.NotFound || got == codes.OK {
			t.Errorf("%s becomes %v", code, got)
		}
	}
}

func TestALongErrorFitsIntoTrailersAndKeepsWhatIsNeededMost(t *testing.T) {
	long := newProblem(pb.ErrorReason_ERROR_REASON_IMMUTABLE_FIELD, "%s", strings.Repeat("ü", 5000))
	long.outcome, long.realm = pb.Outcome_OUTCOME_UNKNOWN, strings.Repeat("r", identityMax)
	for i := range 100 {
		text := fmt.Sprint(i, strings.Repeat("界", 500))
		long.fields = append(long.fields, violation{text, text})
		long.preconditions = append(long.preconditions, precondition{pb.PreconditionType_PRECONDITION_TYPE_IMMUTABLE, text, text})
	}
	sent := long.GRPCStatus()
	if size := proto.Size(sent.Proto()); size > detailBytesMax {
		t.Errorf("%d bytes", size)
	}
	if !utf8.ValidString(sent.Message()) || len(sent.Message()) > messageBytesMax {
		t.Errorf("message of %d bytes", len(sent.Message()))
	}
	expectRefusal(t, long, refusal{code: codes.FailedPrecondition, reason: "IMMUTABLE_FIELD", outcome: pb.Outcome_OUTCOME_UNKNOWN})
}

func TestTextsAreCutAtTheEndOfACharacter(t *testing.T) {
	for text, want := range map[string]string{
		"short": "short", "1234567890": "1234567890", "12345678901": "1234567...",
		"123456界界": "123456...", "界界界1": "界界界1", "界界界界": "界界...", "\xff": "\uFFFD",
	} {
		if got := cutText(text, 10); got != want {
			t.Errorf("%q is cut to %q, want %q", text, got, want)
		}
	}
}
