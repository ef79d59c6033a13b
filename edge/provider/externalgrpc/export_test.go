package externalgrpc

// DeletionTimeout is deletionTimeout, for tests.
var DeletionTimeout = deletionTimeout
