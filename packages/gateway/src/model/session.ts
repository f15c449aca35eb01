import type { ServerRow } from './servers.ts'
import type { ReplicaState } from './replicas.ts'

/** The body of `POST /api/login`. */
export interface LoginBody {
  /** A console key. */
  readonly key: string
}

/** `POST /api/logout`. */
export interface LogoutBody {
  /** Where the browser goes to log out of the authorization server, too. */
  readonly logoutUrl?: string
}

/** `GET /api/login`: how people log in beside console keys. */
export interface LoginsBody {
  readonly oidc?: {
    /** Of the authorization server. */
    readonly name: string
    /** Where the browser goes. */
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
  /** Why it is down. For console keys. */
  readonly problem?: string
}

/** `GET /readyz`: 200 once every server has answered or failed its first start, else 503. `servers` is for console keys. */
export interface ReadyBody {
  /** `refusing`: no call can be recorded or counted, or the replica starts none. */
  readonly status: 'ready' | 'starting' | 'stopping' | 'refusing'
  /** Absent where this gateway is alone. Without a console key it has no reasons. */
  readonly replica?: ReplicaState | Pick<ReplicaState, 'id' | 'problem'>
  /** Why no call can be recorded, `disk` or of a replica also `silent`, `unshipped` or `forked`. The message is for console keys. */
  readonly audit?: { readonly code: string; readonly message?: string }
  /** Why the state takes no writes, so that no approval, halt or limit can be kept. The message is for console keys. */
  readonly state?: { readonly code: string; readonly message?: string }
  readonly servers?: readonly { readonly name: string; readonly status: ServerRow['status'] }[]
  /** Absent without OAuth. An issuer that is down does not make the gateway unready. */
  readonly issuers?: readonly IssuerRow[]
  /** Why what the watched file says is not in force. For console keys. */
  readonly reload?: string
}
