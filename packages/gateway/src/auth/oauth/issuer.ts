import { isObject, type JsonObject } from '@toolgate/values/json'
import { messageOf } from '@toolgate/values'
import type { Clock } from '@toolgate/core/stores'
import { type IssuerConfig, isSecureUrl } from '../../config/oauth.ts'
import { fetchJson, IssuerError } from './fetch-json.ts'
import { findMetadata, metadataUrls, shownValue } from './metadata-places.ts'
import { type SignatureKey, toSignatureKeys } from './signature-keys.ts'

/** The public keys of an issuer. Each change creates a new object. */
export interface IssuerKeys {
  readonly keys: readonly SignatureKey[]
}

type IssuerStatus = 'unknown' | 'up' | 'down'

/** The metadata that the gateway uses (RFC 8414 §2). */
interface Metadata {
  readonly jwksUri: string
  readonly introspectionEndpoint?: string
  readonly login?: LoginMetadata
  /** OpenID Connect Back-Channel Logout §2.1. */
  readonly reportsLogouts: boolean
}

/** The metadata for logins. */
export interface LoginMetadata {
  readonly authorizationEndpoint: string
  readonly tokenEndpoint: string
  readonly endSessionEndpoint?: string
  readonly userinfoEndpoint?: string
  /** Whether the client's secret is sent in the form, as it is not accepted in a header. */
  readonly secretInForm: boolean
  /** Whether each answer names the issuer (RFC 9207). */
  readonly namesIssuer: boolean
}

/** Keys older than this are read again, so that keys that an issuer has withdrawn stop working. */
const FRESH_MS = 10 * 60_000
const METADATA_FRESH_MS = 60 * 60_000
/** The shortest time between two attempts, so that tokens with unknown keys cannot cause a flood of requests. */
const COOLDOWN_MS = 5_000
const MAX_KEYS = 100

/** Reads the metadata and the keys of one authorization server, and refreshes them when they are old. */
export class Issuer {
  readonly config: IssuerConfig
  readonly #clock: Pick<Clock, 'monotonicMs'>
  #metadata: (Metadata & { readonly readMs: number }) | undefined
  #keys: (IssuerKeys & { readonly text: string }) | undefined
  #keysReadMs = Number.NEGATIVE_INFINITY
  #triedMs = Number.NEGATIVE_INFINITY
  #problem: string | undefined
  #reading: Promise<void> | undefined

  constructor(config: IssuerConfig, clock: Pick<Clock, 'monotonicMs'>) {
    this.config = config
    this.#clock = clock
  }

  get status(): IssuerStatus {
    return this.#problem === undefined ? (this.#keys ? 'up' : 'unknown') : 'down'
  }

  /** Why the issuer cannot be used, if so. */
  get problem(): string | undefined {
    return this.#problem
  }

  /** The last known keys, even while the issuer is down. */
  get keys(): IssuerKeys | undefined {
    return this.#keys
  }

  get introspectionEndpoint(): string | undefined {
    return this.config.introspection?.endpoint ?? this.#metadata?.introspectionEndpoint
  }

  /** The metadata for logins, once it was read. */
  get login(): LoginMetadata | undefined {
    return this.#metadata?.login
  }

  /** Whether it can report ended sessions, once its metadata was read. */
  get reportsLogouts(): true | undefined {
    return this.#metadata?.reportsLogouts === true ? true : undefined
  }

  /** Whether the keys are recent enough to verify a new token. */
  get isFresh(): boolean {
    return this.#keys !== undefined && this.#clock.monotonicMs() - this.#keysReadMs < FRESH_MS
  }

  /** Reads the keys again, at most once in five seconds. Resolves when the attempt has ended. Never rejects. */
  async refresh(): Promise<void> {
    if (this.#reading) return this.#reading
    if (this.#clock.monotonicMs() - this.#triedMs < COOLDOWN_MS) return
    this.#triedMs = this.#clock.monotonicMs()
    this.#reading = this.#read().finally(() => (this.#reading = undefined))
    return this.#reading
  }

  async #read(): Promise<void> {
    try {
      const { jwksUri } = await this.#discover()
      const { status, body } = await fetchJson(jwksUri, { proxy: this.config.proxy })
      if (status !== 200) throw new IssuerError(`${jwksUri} answered ${status}`)
      const jwks = toKeySet(body, jwksUri)
      const text = JSON.stringify(jwks)
      // Unchanged keys keep their object, so that verified tokens are not verified again.
      if (this.#keys?.text !== text) this.#keys = { text, keys: toSignatureKeys(jwks, this.config.algorithms) }
      this.#keysReadMs = this.#clock.monotonicMs()
      this.#problem = undefined
    } catch (error) {
      this.#problem = messageOf(error)
      // The metadata is read again too, in case the keys have moved.
      this.#metadata = undefined
    }
  }

  async #discover(): Promise<Metadata> {
    const { jwksUri, introspection } = this.config
    const needsEndpoint = introspection !== undefined && introspection.endpoint === undefined
    if (jwksUri !== undefined && !needsEndpoint) return { jwksUri, reportsLogouts: false }
    const now = this.#clock.monotonicMs()
    if (this.#metadata && now - this.#metadata.readMs < METADATA_FRESH_MS) return this.#metadata
    const read = await readMetadata(this.config)
    this.#metadata = { ...read, readMs: now }
    return read
  }
}

/** Returns the metadata from the first well-known URL that has it. @throws {IssuerError} */
async function readMetadata(config: IssuerConfig): Promise<Metadata> {
  const read = await findMetadata(
    metadataUrls(config.issuer),
    (place) => fetchJson(place, { proxy: config.proxy }),
    (body) => {
      try {
        return toMetadata(body, config)
      } catch (error) {
        if (error instanceof IssuerError) return error.message
        throw error
      }
    },
  )
  if ('found' in read) return read.found
  throw new IssuerError(`no place has the metadata of ${JSON.stringify(config.issuer)}: ${read.answers.join('; ')}`)
}

/** RFC 8414 §3.3: metadata that names another issuer must not be used. */
function toMetadata(body: JsonObject, { issuer, jwksUri: configured }: IssuerConfig): Metadata {
  if (body['issuer'] !== issuer)
    throw new IssuerError(
      `names the issuer ${shownValue(body['issuer'])}, expected ${JSON.stringify(issuer)}${placeholderHint(body['issuer'])}`,
    )
  const jwksUri = configured ?? secureUrl(body, 'jwks_uri')
  if (jwksUri === undefined) throw new IssuerError('has no "jwks_uri"')
  const introspectionEndpoint = secureUrl(body, 'introspection_endpoint')
  const login = toLogin(body)
  return {
    jwksUri,
    ...(introspectionEndpoint === undefined ? {} : { introspectionEndpoint }),
    ...(login === undefined ? {} : { login }),
    reportsLogouts: body['backchannel_logout_supported'] === true,
  }
}

/** Entra ID writes `{tenantid}` at addresses that serve all directories. */
function placeholderHint(issuer: unknown): string {
  const isMany = typeof issuer === 'string' && issuer.includes('{')
  return isMany ? ': this address is for all directories, so write the id of yours in place of "common" or such' : ''
}

/** OpenID Connect Core §9. Without a list, a server takes the header (OpenID Connect Discovery §3). */
const [BASIC, POST] = ['client_secret_basic', 'client_secret_post']

function toLogin(body: JsonObject): LoginMetadata | undefined {
  const authorizationEndpoint = secureUrl(body, 'authorization_endpoint')
  const tokenEndpoint = secureUrl(body, 'token_endpoint')
  const endSessionEndpoint = secureUrl(body, 'end_session_endpoint')
  const userinfoEndpoint = secureUrl(body, 'userinfo_endpoint')
  const { token_endpoint_auth_methods_supported: methods } = body
  if (authorizationEndpoint === undefined || tokenEndpoint === undefined) return undefined
  return {
    authorizationEndpoint,
    tokenEndpoint,
    ...(endSessionEndpoint === undefined ? {} : { endSessionEndpoint }),
    ...(userinfoEndpoint === undefined ? {} : { userinfoEndpoint }),
    secretInForm: Array.isArray(methods) && !methods.includes(BASIC) && methods.includes(POST),
    namesIssuer: body['authorization_response_iss_parameter_supported'] === true,
  }
}

function secureUrl(body: JsonObject, field: string): string | undefined {
  const value = body[field]
  if (value === undefined) return undefined
  if (typeof value !== 'string' || !isSecureUrl(value, true))
    throw new IssuerError(`has the ${JSON.stringify(field)} ${shownValue(value)}, expected an https URL`)
  return value
}

function toKeySet(body: unknown, from: string): readonly unknown[] {
  const keys: unknown = isObject(body) ? body['keys'] : undefined
  if (!Array.isArray(keys)) throw new IssuerError(`${from} answered without "keys"`)
  if (keys.length > MAX_KEYS) throw new IssuerError(`${from} answered more than ${MAX_KEYS} keys`)
  return keys
}
