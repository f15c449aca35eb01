import { isObject, type JsonObject } from '@toolgate/values/json'

/** The payload of an `InputRequired` from a server's item: the server's requests to its client. */
export interface Asked {
  /** Requests such as `elicitation/create`, by a key that the answers repeat. */
  readonly requests: JsonObject
  /** The state for the next round: the server's own state, or the id of a held call. */
  readonly state: unknown
}

export function isAsked(payload: unknown): payload is Asked {
  return isObject(payload) && isObject(payload['requests'])
}
