package main

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"

	pb "digital-human-provider/examples/adapter-go/gen/dhp/provider/v1"
)

const (
	pageSizeDefault    = 100
	pageSizeMax        = 1000
	vendorPagesMax     = 20
	checksumCharacters = 22
)

// List is what carries our stamp, in pages (AIP-158): a page may be short while there is a next one.
func (a *adapter) List(ctx context.Context, request *pb.ListRequest) (*pb.ListResponse, error) {
	response, err := a.list(ctx, request)
	return response, explain(err, "list instances", request.GetTarget())
}

func (a *adapter) list(ctx context.Context, request *pb.ListRequest) (*pb.ListResponse, error) {
	if err := checkList(request); err != nil {
		return nil, err
	}
	at, err := a.check.site(request.GetTarget())
	if err != nil {
		return nil, err
	}
	about := questionText(at, request.OwnerCluster)
	query := speakerQuery{Label: labelShort}
	if request.OwnerCluster != nil {
		query = speakerQuery{Label: labelCluster, Value: request.GetOwnerCluster()}
	}
	if query.PageToken, err = readPageToken(request.GetPageToken(), about); err != nil {
		return nil, err
	}
	left := pageSize(request.GetPageSize())
	response := &pb.ListResponse{Realm: at.realm}
	for range vendorPagesMax {
		query.PageSize = min(left, vendorPageMax)
		page, err := a.vendor.ListSpeakers(ctx, at.place, query)
		if err != nil {
			return nil, classify(err, false)
		}
		for i := range page.Speakers {
			if stampOf(page.Speakers[i].Labels) != nil {
				response.Instances = append(response.Instances, instanceMessage(&page.Speakers[i], at.realm, nil))
			}
		}
		left -= len(page.Speakers)
		query.PageToken = page.NextToken
		if page.NextToken == "" {
			return response, nil
		}
		if left <= 0 {
			break
		}
	}
	response.NextPageToken = writePageToken(query.PageToken, about)
	return response, nil
}

func checkList(request *pb.ListRequest) error {
	wrong := &mistakes{}
	if request.GetPageSize() < 0 {
		wrong.add("page_size", "is negative")
	}
	wrong.optional("page_token", request.GetPageToken(), pageTokenMax)
	if request.OwnerCluster != nil {
		wrong.required("owner_cluster", request.GetOwnerCluster(), clusterMax)
	}
	return wrong.refusal()
}

func pageSize(asked int32) int {
	if asked == 0 {
		return pageSizeDefault
	}
	return int(min(asked, pageSizeMax))
}

// questionText is what a token is only good for: target and filter.
func questionText(at site, ownerCluster *string) string {
	filter := "all"
	if ownerCluster != nil {
		filter = "of " + *ownerCluster
	}
	return fmt.Sprintf("%q %q %q", at.target.GetEndpoint(), at.realm, filter)
}

// writePageToken wraps the vendor's token, bound to its question.
func writePageToken(vendorToken, about string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(checksum(vendorToken, about) + vendorToken))
}

// readPageToken refuses what this adapter did not give for this question.
func readPageToken(token, about string) (string, error) {
	if token == "" {
		return "", nil
	}
	decoded, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err == nil && len(decoded) > checksumCharacters {
		vendorToken := string(decoded[checksumCharacters:])
		if strings.HasPrefix(string(decoded), checksum(vendorToken, about)) {
			return vendorToken, nil
		}
	}
	refused := newProblem(pb.ErrorReason_ERROR_REASON_INVALID_FIELD,
		"page_token is not one that was given for this list")
	refused.fields = []violation{{"page_token", "was not given for this question"}}
	return "", refused
}

// checksum tells our tokens from others and from slips of the pen; tokens open no doors, so it is no
// secret.
func checksum(vendorToken, about string) string {
	digest := sha256.Sum256(fmt.Appendf(nil, "%q %q", about, vendorToken))
	return base64.RawURLEncoding.EncodeToString(digest[:])[:checksumCharacters]
}
