package storm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	flowv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// This file is what the API server refuses, and why.

const refusal = "storm" // the name of the objects that make it refuse

// reject gives Berth's user a priority level without a seat, whose queue is full at once.
func reject(ctx context.Context, r *run, s Step) (_ time.Time, err error) {
	flow := r.bed.client.FlowcontrolV1()
	level := &flowv1.PriorityLevelConfiguration{ObjectMeta: metav1.ObjectMeta{Name: refusal}}
	level.Spec.Type = flowv1.PriorityLevelEnablementLimited
	level.Spec.Limited = &flowv1.LimitedPriorityLevelConfiguration{NominalConcurrencyShares: new(int32(0)), LendablePercent: new(int32(0)), BorrowingLimitPercent: new(int32(0)),
		LimitResponse: flowv1.LimitResponse{Type: flowv1.LimitResponseTypeReject}}
	schema := &flowv1.FlowSchema{ObjectMeta: metav1.ObjectMeta{Name: refusal}}
	schema.Spec.PriorityLevelConfiguration.Name, schema.Spec.MatchingPrecedence = refusal, 100
	schema.Spec.Rules = []flowv1.PolicyRulesWithSubjects{{
		Subjects:         []flowv1.Subject{{Kind: flowv1.SubjectKindUser, User: &flowv1.UserSubject{Name: berthUser}}},
		ResourceRules:    []flowv1.ResourcePolicyRule{{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}, ClusterScope: true, Namespaces: []string{"*"}}},
		NonResourceRules: []flowv1.NonResourcePolicyRule{{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}}},
	}}
	if _, err := flow.PriorityLevelConfigurations().Create(ctx, level, metav1.CreateOptions{}); err != nil {
		return time.Time{}, fmt.Errorf("creating a priority level: %w", err)
	}
	defer func() {
		err = errors.Join(err, flow.PriorityLevelConfigurations().Delete(context.WithoutCancel(ctx), refusal, metav1.DeleteOptions{}))
	}()
	if _, err := flow.FlowSchemas().Create(ctx, schema, metav1.CreateOptions{}); err != nil {
		return time.Time{}, fmt.Errorf("creating a flow schema: %w", err)
	}
	free, err := r.occupy(ctx)
	if err != nil {
		return time.Time{}, err
	}
	pause(ctx, s.Lasts)
	free()
	err = flow.FlowSchemas().Delete(context.WithoutCancel(ctx), refusal, metav1.DeleteOptions{})
	return time.Now(), err
}

// occupy keeps a request of Berth's user executing until free is called: a priority level without
// seats still executes one request at a time, and rejects the others. The request creates an
// event whose text never ends.
func (r *run) occupy(ctx context.Context) (free func(), err error) {
	files := r.bed.cluster.ClientFiles(r.bed.berths[0].name)
	client, err := rest.HTTPClientFor(&rest.Config{Host: r.bed.cluster.Config.Host,
		TLSClientConfig: rest.TLSClientConfig{CAFile: files.CA, CertFile: files.Cert, KeyFile: files.Key}})
	if err != nil {
		return nil, fmt.Errorf("making a client of Berth's user: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	var calling sync.WaitGroup
	calling.Go(func() {
		for ctx.Err() == nil { // one is rejected while another of Berth's requests executes
			body, _ := io.Pipe()
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.bed.cluster.Config.Host+"/apis/events.k8s.io/v1/namespaces/default/events", body)
			if err != nil {
				return
			}
			req.Header.Set("Content-Type", "application/json")
			if answer, err := client.Do(req); err == nil {
				answer.Body.Close()
			}
			body.Close()
		}
	})
	return func() { cancel(); calling.Wait() }, nil
}

// refuseBinds makes an admission policy deny every binding.
func refuseBinds(ctx context.Context, r *run, s Step) (time.Time, error) {
	return r.deny(ctx, s, "the storm refuses every bind", admissionv1.Create, admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods/binding"}})
}

// refuseClaims makes an admission policy deny every write of a claim's status: devices are neither allocated
// nor given back.
func refuseClaims(ctx context.Context, r *run, s Step) (time.Time, error) {
	return r.deny(ctx, s, "the storm refuses every claim's status", admissionv1.Update, admissionv1.Rule{APIGroups: []string{"resource.k8s.io"}, APIVersions: []string{"*"}, Resources: []string{"resourceclaims/status"}})
}

// deny makes an admission policy deny an operation while the step lasts.
func (r *run) deny(ctx context.Context, s Step, message string, operation admissionv1.OperationType, rule admissionv1.Rule) (_ time.Time, err error) {
	admission := r.bed.client.AdmissionregistrationV1()
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: refusal}}
	policy.Spec.MatchConstraints = &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
		Operations: []admissionv1.OperationType{operation}, Rule: rule,
	}}}}
	policy.Spec.Validations = []admissionv1.Validation{{Expression: "false", Message: message}}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: refusal}}
	binding.Spec.PolicyName, binding.Spec.ValidationActions = refusal, []admissionv1.ValidationAction{admissionv1.Deny}
	if _, err := admission.ValidatingAdmissionPolicies().Create(ctx, policy, metav1.CreateOptions{}); err != nil {
		return time.Time{}, fmt.Errorf("creating an admission policy: %w", err)
	}
	defer func() {
		err = errors.Join(err, admission.ValidatingAdmissionPolicies().Delete(context.WithoutCancel(ctx), refusal, metav1.DeleteOptions{}))
	}()
	if _, err := admission.ValidatingAdmissionPolicyBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		return time.Time{}, fmt.Errorf("binding an admission policy: %w", err)
	}
	pause(ctx, s.Lasts)
	err = admission.ValidatingAdmissionPolicyBindings().Delete(context.WithoutCancel(ctx), refusal, metav1.DeleteOptions{})
	return time.Now(), err
}

// Certificates that are about to expire.
const (
	expiresAfter = 5 * time.Second
	longValid    = 24 * time.Hour
)

// expireClientCertificates gives all Berths certificates that expire soon, and rotates them
// a while after that. Connections are cut at both times: client-go looks at its files when it
// connects, and every five minutes.
func expireClientCertificates(ctx context.Context, r *run, s Step) (time.Time, error) {
	for _, valid := range []time.Duration{expiresAfter, longValid} {
		for _, b := range r.bed.berths {
			if err := r.bed.issue(b, valid); err != nil {
				return time.Time{}, err
			}
		}
		pause(ctx, 2*time.Second) // client-go keeps what it has read for a second
		for _, b := range r.bed.berths {
			if err := b.proxy.cut(); err != nil {
				return time.Time{}, err
			}
		}
		if valid == expiresAfter {
			pause(ctx, expiresAfter+s.Lasts)
		}
	}
	return time.Now(), nil
}

// expireServingCertificate makes the API server serve with a certificate that expires soon, and
// rotates it a while after that. All connections of Berths are cut in between, so that they
// meet the expired one.
func expireServingCertificate(ctx context.Context, r *run, s Step) (time.Time, error) {
	if err := r.bed.cluster.IssueServing(expiresAfter); err != nil {
		return time.Time{}, err
	}
	pause(ctx, expiresAfter+time.Second)
	for _, b := range r.bed.berths {
		if err := b.proxy.cut(); err != nil {
			return time.Time{}, err
		}
	}
	pause(ctx, s.Lasts)
	err := r.bed.cluster.IssueServing(longValid)
	if err == nil {
		err = r.bed.cluster.WaitServing(ctx, servesWithin)
	}
	return time.Now(), err
}
