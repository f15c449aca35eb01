// `@toolgate/core/redact`: secrets are hidden before anything is written, logged or shown.

export { createRedactor, redactor, type Redactor } from '../redact/redact.ts'
