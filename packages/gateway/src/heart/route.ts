import type { Caller } from '@toolgate/core'
import type { MaybePromise } from '@toolgate/core/internal'
import type { Credential } from '../auth/credential.ts'
import type { RequestSource } from '../util/client-address.ts'

/** A request whose person is known. */
export interface Asked {
  readonly request: Request
  readonly query: URLSearchParams
  readonly person: Caller
  /** When the person showed their key, in wall-clock milliseconds. */
  readonly loginAt: number
  /** The last part of the path, for routes that end in an id. */
  readonly id: string
  /** The host that asks, for routes that hosts may ask, too. */
  readonly host?: Credential
}

/** Returns the body of a 200, or a `Response` that is not JSON. Throws an `ApiFault` for anything else. */
export type Answer = (asked: Asked) => MaybePromise<object>

/** Whom a request is about: its home answers, where users have instances. */
export interface Subject {
  readonly caller: Caller
  /** The tool that the request names. */
  readonly tool?: string
  /** The request makes a call that the person may make. */
  readonly isCall?: boolean
}

/** Returns whom a person asks about. A refused request has no subject: it throws, and is answered where it came. */
export type FindSubject = (asked: {
  readonly request: Request
  readonly person: Caller
  readonly id: string
  /** Reads the body, which the route reads again. */
  readonly readText: () => Promise<string>
}) => MaybePromise<Subject | undefined>

interface Place {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** Such as `/api/keys/:id`. */
  readonly path: string
}

/** One row of the HTTP API. `by` says who asks; the API checks people and hosts before it calls `answer`. */
export type Route = Place &
  (
    | {
        readonly by: 'person' | 'host-or-person'
        readonly answer: Answer
        readonly subject?: FindSubject
      }
    /** `answer` checks the credential itself, or needs none. */
    | { readonly by: 'agent' | 'host' | 'anyone'; readonly answer: (request: Request) => MaybePromise<object> }
  )

/** The pages under a path. They answer people in HTML, and check people themselves. */
export interface Pages {
  /** Such as `/approvals/`. */
  readonly under: string
  fetch(request: Request, from?: RequestSource): Promise<Response>
}
