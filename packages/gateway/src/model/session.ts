import type { ServerRow } from './servers.ts'
import type { ReplicaState } from './replicas.ts'

/** The body of `POST /api/login`. */
export interface LoginBody {
  /** A console key. */
  readonly key: string
}

/** `POST /api/logout`. */
export interface LogoutBody {
  /** The URL that logs the browser out of the authorization server, too. */
  readonly logoutUrl?: string
}

/** `GET /api/login`: how people log in beside console keys. */
export interface LoginsBody {
  readonly oidc?: {
    /** The name of the authorization server. */
    readonly name: string
    /** The URL that starts the login in the browser. */
    readonly url: string
  }
}

/** `GET /api/openapi.json`: the API in OpenAPI 3.1. */
export interface OpenapiBody {
  readonly openapi: string
  readonly info: object
  readonly tags: readonly object[]
  readonly paths: object
  readonly components: object
}

/** `GET /api/session` and `POST /api/login` */
export interface SessionBody {
  readonly user: string
  /** What people call the person, from a login with OpenID Connect. Nothing is decided by it. */
  readonly label?: string
  readonly tenant?: string
  /** This person sees callers of several tenants. */
  readonly manyTenants?: true
  readonly roles: readonly string[]
}

/** The body of every response that is not 2xx. `code` is stable; `message` is for people. */
export interface ErrorBody {
  readonly error: { readonly code: string; readonly message: string }
}

/** An authorization server whose tokens the gateway accepts. */
export interface IssuerRow {
  readonly name: string
  readonly issuer: string
  /** `down`: its keys cannot be read, so tokens that were not seen before are refused. */
  readonly status: 'unknown' | 'up' | 'down'
  /** The reason why it is down. Only for console keys. */
  readonly problem?: string
  /** It can report ended sessions: OpenID Connect Back-Channel Logout. */
  readonly reportsLogouts?: true
}

/** `GET /readyz`: 200 once each server has answered or failed to start, else 503. Only console keys get `servers`. */
export interface ReadyBody {
  /** `refusing`: calls cannot be recorded or counted, or the replica starts no calls. */
  readonly status: 'ready' | 'starting' | 'stopping' | 'refusing'
  /** Absent if this gateway has no replicas. Without a console key it has only `id` and `problem`. */
  readonly replica?: ReplicaState | Pick<ReplicaState, 'id' | 'problem'>
  /**
   * The reason why no call can be recorded: `disk`, or for a replica also `silent`, `unshipped` or `forked`. Only
   * console keys get the message.
   */
  readonly audit?: { readonly code: string; readonly message?: string }
  /**
   * The reason why the state cannot be written, so that no approval, halt or limit can be stored. Only console keys get
   * the message.
   */
  readonly state?: { readonly code: string; readonly message?: string }
  readonly servers?: readonly Pick<ServerRow, 'name' | 'status' | 'waitsFor'>[]
  /** Absent without OAuth. An issuer that is down does not make the gateway unready. */
  readonly issuers?: readonly IssuerRow[]
  /** The receivers that take no notifications of approvals. Only for console keys. */
  readonly notifications?: readonly { readonly name: string; readonly why: string }[]
  /** The reason why the current text of the watched file is not in force. Only for console keys. */
  readonly reload?: string
}
