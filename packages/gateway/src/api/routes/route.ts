import type { Caller } from '@toolgate/core'
import type { MaybePromise } from '@toolgate/core/internal'

/** A request whose person is known. */
export interface RouteContext {
  readonly request: Request
  readonly query: URLSearchParams
  readonly person: Caller
  /** The last part of the path, for routes that end in an id. */
  readonly id: string
}

/** Gives the body of a 200, or the answer itself where it is no JSON. Anything else is thrown as an `ApiFault`. */
export type Route = (context: RouteContext) => MaybePromise<object>
