// Package door is where everything comes in: objects of the API, what a provider lists, answers of
// extenders, outcomes of calls, files, recordings and questions. It bounds names, sizes, amounts,
// counts and nesting, so that nothing behind it works without end on what somebody wrote.
//
//   - An Input is what the core takes. Only Admit makes one, so the compiler keeps out what hasn't
//     been admitted.
//   - Read decodes JSON that was written outside; Object bounds what a library has decoded.
//   - NameError refuses questions about names that nothing can have.
//
// What is beyond a bound is a Problem, which names the object, the field, the size and the bound.
// An edge logs and counts it.
package door
