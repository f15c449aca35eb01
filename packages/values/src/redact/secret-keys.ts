import { ConfigError } from '../errors.ts'
import { spend, type Work } from '../work.ts'
import { foldMarks, joinLetters } from './spelling.ts'
import { DASH, DOT, UNDERSCORE } from './spans.ts'

/** Which values under a key are secret: any, only opaque ones, only digits, or none. */
export type ValueKind = 'any' | 'opaque' | 'digits' | 'never'

/** How a value is written after its key in a text: a word or quoted text, a percent-encoded word, an authorization, or the rest of the line. */
type ValueExtent = 'word' | 'escaped' | 'authorization' | 'line'

export interface SecretKey {
  /** The name in the marker: `[redacted:<name>]`. */
  readonly name: string
  /** Last words of a key, in snake_case: `api_key` is also the end of `x-api-key` and `stripeApiKey`. */
  readonly endings: readonly string[]
  readonly values: ValueKind
  readonly extent?: ValueExtent
}

/**
 * Keys that name a secret, by their last words. The longest ending decides.
 *
 * `any`: a text or number of any length, and a list or object as a whole. `opaque`: a text of at least 16 characters
 * without spaces, with letters and digits. `digits`: 3 to 12 digits.
 */
export const SECRET_KEYS: readonly SecretKey[] = [
  {
    name: 'password',
    endings: wordsOf(
      'password passwords passwd pwd pass passphrase pass_phrase passcode pass_code pass_word',
      'password_confirm password_confirmation password_hash password_value pgpassword pgpass userpass',
      'passwort kennwort passwoord wachtwoord mot_de_passe motdepasse contraseña senha hasło heslo lösenord',
      'adgangskode salasana jelszó şifre mật_khẩu пароль 密码 密碼 口令 パスワード 비밀번호 암호 รหัสผ่าน',
    ),
    values: 'any',
  },
  {
    name: 'secret',
    endings: wordsOf(
      'secret secrets secret_value client_secret shared_secret app_secret webhook_secret jwt_secret',
      'secret_string seed_phrase mnemonic_phrase recovery_phrase',
    ),
    values: 'any',
  },
  {
    name: 'token',
    endings: wordsOf(
      'token token_value access_tokens refresh_tokens auth_tokens api_tokens bearer_tokens authtoken jwt',
      'bearer token_secret',
    ),
    values: 'any',
  },
  {
    name: 'api-key',
    endings: wordsOf(
      'api_key api_keys apikeys app_key auth_key account_key function_key functions_key subscription_key',
      'service_role_key shared_key shared_access_key storage_key deploy_key license_key access_key',
      'accesskey',
    ),
    values: 'any',
  },
  {
    name: 'secret-key',
    endings: wordsOf(
      'secret_key secret_keys secretkey secret_access_key private_key private_keys privatekey',
      'private_key_pem signing_key encryption_key decryption_key master_key ssh_key host_key key_material',
      'key_pem pem_key private_jwk',
    ),
    values: 'any',
  },
  {
    name: 'authorization',
    endings: ['authorization', 'auth_header', 'authorization_header'],
    values: 'any',
    extent: 'authorization',
  },
  { name: 'cookie', endings: ['cookie', 'cookies', 'set_cookie', 'cookie2'], values: 'any', extent: 'line' },
  {
    name: 'credential',
    endings: ['credential', 'credentials', 'creds', 'connection_string', 'connectionstring'],
    values: 'any',
  },
  {
    name: 'session',
    endings: wordsOf(
      'session_token session_key session_secret sessionid jsessionid phpsessid sessid asp_net_session_id',
    ),
    values: 'any',
  },
  { name: 'session', endings: ['session', 'session_id', 'sid'], values: 'opaque' },
  { name: 'signature', endings: ['sig', 'signature', 'x_amz_signature', 'x_goog_signature'], values: 'opaque' },
  {
    name: 'auth',
    endings: ['auth', 'auth_code', 'authorization_code', 'code_verifier', 'nonce_secret'],
    values: 'opaque',
  },
  {
    name: 'pin',
    endings: wordsOf(
      'pin pin_code pincode pin_number otp otp_code totp mfa_code cvv cvc cvn cvv2 security_code',
      'verification_code 暗証番号',
    ),
    values: 'digits',
  },
  {
    name: 'not-a-secret',
    endings: wordsOf(
      'page_token pagetoken next_token nexttoken prev_token previous_token continuation_token sync_token',
      'cursor_token cancel_token cancellation_token progress_token stop_token eos_token bos_token pad_token',
      'unk_token mask_token sep_token cls_token special_token cost_per_token price_per_token per_token',
      'ms_per_token by_pass first_pass second_pass multi_pass single_pass tests_pass test_pass',
    ),
    values: 'never',
  },
]

/** Endings that also count without a word boundary before them: `dbpassword`, `clientsecret`. */
const GLUED_ENDINGS: readonly string[] = wordsOf(
  'password passwd passphrase apikey secret token passwort kennwort 密码 密碼 口令 パスワード 비밀번호 暗証番号',
)

/** Recognises keys that name a secret. */
export interface KeyNames {
  /** Returns the row of a key that names a secret. @throws {WorkSpentError} if `work` is given and spent */
  find(key: string, work?: Work): SecretKey | undefined
  /** Returns whether a key that ends at `end` may name a secret, judged by its last three characters. */
  mayEnd(text: string, end: number): boolean
}

const MAX_KEY = 100
const MAX_WORDS = 4
const MAX_REMEMBERED = 2000
/** Steps for looking up a key that is not remembered. */
const FIND_STEPS = 200
/** The end of a word in a key: before a capital, between an abbreviation and a word (`APIKey`), and between scripts. */
const WORD_BREAK =
  /(?<=[\p{Ll}\d])(?=\p{Lu})|(?<=\p{Lu})(?=\p{Lu}\p{Ll})|(?<=[\p{sc=Latin}\d])(?=[\p{L}--\p{sc=Latin}])|(?<=[\p{L}--\p{sc=Latin}])(?=\p{sc=Latin})|[^\p{L}\p{N}]+/v

/** Creates the recogniser. @throws {ConfigError} for a further key that has neither a letter nor a digit */
export function createKeyNames(further: readonly string[] = []): KeyNames {
  const endings = new Map<string, SecretKey>()
  for (const row of SECRET_KEYS) for (const ending of row.endings) endings.set(foldMarks(ending), row)
  const gluedEndings = GLUED_ENDINGS.map(foldMarks)
  for (const ending of gluedEndings) if (!endings.has(ending)) endings.set(ending, API_KEY)
  further.forEach((key, i) => {
    const ending = typeof key === 'string' ? toWords(key).join('_') : ''
    if (ending === '') throw new ConfigError(`keys[${i}]`, 'expected a key with a letter or a digit')
    endings.set(ending, FURTHER_KEY)
  })
  const longest = Math.max(MAX_WORDS, ...[...endings.keys()].map((ending) => ending.split('_').length))
  const glued = gluedEndings.map((ending) => [ending, endings.get(ending) as SecretKey] as const)
  const remembered = new Map<string, SecretKey>()
  const lasts = toLasts(endings.keys())

  function find(key: string, work?: Work): SecretKey | undefined {
    const before = remembered.get(key)
    if (before !== undefined) return before === NO_SECRET ? undefined : before
    if (work) spend(work, FIND_STEPS)
    const row = findRow(key.length > MAX_KEY ? key.slice(-MAX_KEY) : key, { endings, longest, glued })
    const known = row?.values === 'never' ? undefined : row
    if (key.length <= MAX_KEY) {
      if (remembered.size >= MAX_REMEMBERED) remembered.clear()
      remembered.set(key, known ?? NO_SECRET)
    }
    return known
  }

  function mayEnd(text: string, end: number): boolean {
    const last = text.charCodeAt(end - 1)
    const [second, third] = [text.charCodeAt(end - 2), text.charCodeAt(end - 3)]
    // Abbreviations may have signs between their letters, and other scripts may have combining marks.
    return (
      isDigit(last) ||
      isSign(last) ||
      isSign(second) ||
      (last | second | third) > 127 ||
      lasts[lastIndex(third, second, last)] === 1
    )
  }

  return { find, mayEnd }
}

const NO_SECRET: SecretKey = { name: '', endings: [], values: 'never' }

/** Returns the index of three characters. Five bits of a letter are its place in the alphabet, in either case. */
function lastIndex(third: number, second: number, last: number): number {
  return ((third & 31) << 10) | ((second & 31) << 5) | (last & 31)
}

/** Returns a table of the last three characters of all endings. Before a shorter last word there may be any character: `session_id`, `sessionId`. */
function toLasts(endings: Iterable<string>): Uint8Array {
  const lasts = new Uint8Array(1 << 15)
  const any = Array.from({ length: 32 }, (_, code) => code)
  for (const ending of endings) {
    const word = ending.slice(ending.lastIndexOf('_') + 1)
    const codes = (back: number) => (back > word.length ? any : [word.charCodeAt(word.length - back)])
    for (const last of codes(1))
      for (const second of codes(2)) for (const third of codes(3)) lasts[lastIndex(third, second, last)] = 1
  }
  return lasts
}

function isSign(code: number): boolean {
  return code === DOT || code === UNDERSCORE || code === DASH
}

function isDigit(code: number): boolean {
  return code >= 48 && code <= 57
}

const API_KEY = SECRET_KEYS.find(({ name }) => name === 'api-key') as SecretKey
/** A key of the operator's own. */
export const FURTHER_KEY: SecretKey = { name: 'key', endings: [], values: 'any' }

interface Endings {
  readonly endings: ReadonlyMap<string, SecretKey>
  readonly longest: number
  readonly glued: readonly (readonly [string, SecretKey])[]
}

function findRow(key: string, { endings, longest, glued }: Endings): SecretKey | undefined {
  // A masked key does not name a secret.
  if (key.includes('[redacted:')) return undefined
  const words = toWords(key)
  for (let count = Math.min(longest, words.length); count > 0; count--) {
    const row = endings.get(words.slice(-count).join('_'))
    if (row) return row
  }
  const last = words.at(-1) ?? ''
  return glued.find(([ending]) => last.endsWith(ending))?.[1]
}

/** Returns the words of a key, without a number at its end: `password2`, `secret_key_1`. */
function toWords(key: string): string[] {
  const words = joinLetters(foldMarks(key))
    .split(WORD_BREAK)
    .filter((word) => word !== '')
  const last = words.at(-1)
  if (words.length > 1 && last !== undefined && /^\d+$/.test(last)) words.pop()
  return words
    .map((word) => word.toLowerCase())
    .map((word) => (/^cookie2$|^cvv2$/.test(word) ? word : word.replace(/\d+$/, '') || word))
}

function wordsOf(...lines: readonly string[]): readonly string[] {
  return lines.join(' ').split(' ')
}
