export {
  type Authenticated,
  type Authentication,
  type AuthenticationProblem,
  createKeyring,
  type Keyring,
  toChallenge,
  toKeyId,
} from './keyring.ts'
export { createFailedLogins, type FailedLogins, toNetwork } from './failed-logins.ts'
export { checkOrigin, createOriginRules, type OriginOptions, type OriginProblem, type OriginRules } from './origin.ts'
