export {
  type Authenticated,
  type Authentication,
  type AuthenticationProblem,
  createKeyring,
  type Keyring,
  toChallenge,
} from './keyring.ts'
export { checkOrigin, createOriginRules, type OriginOptions, type OriginProblem, type OriginRules } from './origin.ts'
