// `@toolgate/core/redact`: masks secrets before anything is written, logged or shown.

export { createRedactor, redactor, type Redactor } from '../redact/redact.ts'
