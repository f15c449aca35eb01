import type { Caller } from '@toolgate/core'
import type { MaybePromise } from '@toolgate/core/internal'
import type { Credential } from '../auth/credential.ts'
import type { RequestSource } from '../util/client-address.ts'

/** A request from a known person. */
export interface Asked {
  readonly request: Request
  readonly query: URLSearchParams
  readonly person: Caller
  /** When the person logged in, in wall-clock milliseconds. */
  readonly loginAt: number
  /** The last part of the path, for routes that end in an id. */
  readonly id: string
  /** The host that asks, for routes that hosts may use too. */
  readonly host?: Credential
}

/** Returns the body of a 200, or a `Response` that is not JSON. Throws an `ApiFault` for anything else. */
export type Answer = (asked: Asked) => MaybePromise<object>

/** The caller that a request is about. If users have instances, the replica that is this user's home answers. */
export interface Subject {
  readonly caller: Caller
  /** The tool that the request names. */
  readonly tool?: string
  /** Whether the request makes a call that the person may make. */
  readonly isCall?: boolean
}

/**
 * Returns the caller that a person asks about. If it throws, the replica that received the request answers it.
 */
export type FindSubject = (asked: {
  readonly request: Request
  readonly person: Caller
  readonly id: string
  /** Reads the body. The route can read it again. */
  readonly readText: () => Promise<string>
}) => MaybePromise<Subject | undefined>

interface RoutePlace {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** The path of the route, such as `/api/keys/:id`. */
  readonly path: string
}

/** One row of the HTTP API. `by` names who may ask; the API checks people and hosts before it calls `answer`. */
export type Route = RoutePlace &
  (
    | {
        readonly by: 'person' | 'host-or-person'
        readonly answer: Answer
        readonly subject?: FindSubject
      }
    /** `answer` checks the credential itself, or needs none. */
    | { readonly by: 'agent' | 'host' | 'anyone'; readonly answer: (request: Request) => MaybePromise<object> }
  )

/** The pages under a path. They answer in HTML, and authenticate people themselves. */
export interface Pages {
  /** The start of the path, such as `/approvals/`. */
  readonly under: string
  fetch(request: Request, from?: RequestSource): Promise<Response>
}
