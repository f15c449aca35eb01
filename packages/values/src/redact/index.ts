// `@toolgate/values/redact`: masks secrets before anything is written, logged or shown.

export { createRedactor, redactor, type Redactor } from './redact.ts'
export { foldMarks, joinLetters } from './spelling.ts'
