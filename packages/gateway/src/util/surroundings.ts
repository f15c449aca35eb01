import { CACHE_VARIABLES, type ProcessEnv } from './package-caches.ts'

/** Variables that say where trust, tools and time are. None of them holds a secret. */
const PLAIN: ReadonlySet<string> = new Set([
  ...CACHE_VARIABLES,
  ...`PATH HOME USER LOGNAME TMPDIR TMP TEMP LANG LANGUAGE TZ
  NODE_EXTRA_CA_CERTS NODE_USE_SYSTEM_CA SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE CURL_CA_BUNDLE PIP_CERT
  GIT_SSL_CAINFO AWS_CA_BUNDLE CARGO_HTTP_CAINFO DENO_CERT DENO_TLS_CA_STORE UV_NATIVE_TLS UV_SYSTEM_CERTS
  npm_config_cafile NPM_CONFIG_CAFILE NODE_USE_ENV_PROXY NO_PROXY no_proxy
  JAVA_HOME GOROOT RUSTUP_HOME PYENV_ROOT NVM_DIR VOLTA_HOME ASDF_DIR ASDF_DATA_DIR MISE_DATA_DIR`.split(/\s+/),
])
const PROXIES: ReadonlySet<string> = new Set(
  'HTTP_PROXY http_proxy HTTPS_PROXY https_proxy ALL_PROXY all_proxy'.split(' '),
)
const LOCALE = /^LC_[A-Z]{1,32}$/

/**
 * Returns the variables of this process that every child gets: its paths, certificates, proxies, language and time
 * zone. A proxy with a user or password in its URL is left out, as that is a secret.
 */
export function surroundings(env: ProcessEnv = process.env): Record<string, string> {
  const passed: Record<string, string> = {}
  for (const [name, value] of Object.entries(env))
    if (value !== undefined && (isPlain(name) || (PROXIES.has(name) && !hasLogin(value)))) passed[name] = value
  return passed
}

/** Returns the names of the proxies that children do not get, as their URLs contain a user or password. */
export function withheldProxies(env: ProcessEnv = process.env): readonly string[] {
  return [...PROXIES].filter((name) => hasLogin(env[name] ?? ''))
}

function isPlain(name: string): boolean {
  return PLAIN.has(name) || LOCALE.test(name)
}

/** Whether a proxy may have a login. It may be written without a scheme: `vera:secret@proxy:3128`. */
function hasLogin(value: string): boolean {
  return value.includes('@')
}
