/** When the value under a key is taken for a secret: always, only an opaque one, only digits, or never. */
export type ValueKind = 'any' | 'opaque' | 'digits' | 'never'

/** How a value is written behind its key in a text: a word or a quoted text, a percent-encoded word, an authorization, or the rest of the line. */
export type ValueExtent = 'word' | 'escaped' | 'authorization' | 'line'

export interface SecretKey {
  /** What stands in the marker: `[redacted:<name>]`. */
  readonly name: string
  /** Last words of a key, in snake_case: `api_key` is also the end of `x-api-key` and `stripeApiKey`. */
  readonly endings: readonly string[]
  readonly values: ValueKind
  readonly extent?: ValueExtent
}

/**
 * Keys that name a secret, by their last words. The longest ending decides.
 *
 * `any` holds for a text or number of any length, and for a list or object as a whole. `opaque` holds for a
 * text of at least 16 characters without spaces, with letters and digits. `digits` holds for 3 to 12 digits.
 */
export const SECRET_KEYS: readonly SecretKey[] = [
  {
    name: 'password',
    endings: [
      'password',
      'passwords',
      'passwd',
      'pwd',
      'pass',
      'passphrase',
      'pass_phrase',
      'passcode',
      'pass_code',
      'pass_word',
      'password_confirm',
      'password_confirmation',
      'password_hash',
      'password_value',
      'pgpassword',
      'pgpass',
      'userpass',
    ],
    values: 'any',
  },
  {
    name: 'secret',
    endings: [
      'secret',
      'secrets',
      'secret_value',
      'client_secret',
      'shared_secret',
      'app_secret',
      'webhook_secret',
      'jwt_secret',
      'secret_string',
      'seed_phrase',
      'mnemonic_phrase',
      'recovery_phrase',
    ],
    values: 'any',
  },
  {
    name: 'token',
    endings: [
      'token',
      'token_value',
      'access_tokens',
      'refresh_tokens',
      'auth_tokens',
      'api_tokens',
      'bearer_tokens',
      'authtoken',
      'jwt',
      'bearer',
      'token_secret',
    ],
    values: 'any',
  },
  {
    name: 'api-key',
    endings: [
      'api_key',
      'api_keys',
      'apikeys',
      'app_key',
      'auth_key',
      'account_key',
      'function_key',
      'functions_key',
      'subscription_key',
      'service_role_key',
      'shared_key',
      'shared_access_key',
      'storage_key',
      'deploy_key',
      'license_key',
      'access_key',
      'accesskey',
    ],
    values: 'any',
  },
  {
    name: 'secret-key',
    endings: [
      'secret_key',
      'secret_keys',
      'secretkey',
      'secret_access_key',
      'private_key',
      'private_keys',
      'privatekey',
      'private_key_pem',
      'signing_key',
      'encryption_key',
      'decryption_key',
      'master_key',
      'ssh_key',
      'host_key',
      'key_material',
      'key_pem',
      'pem_key',
      'private_jwk',
    ],
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
    endings: [
      'session_token',
      'session_key',
      'session_secret',
      'sessionid',
      'jsessionid',
      'phpsessid',
      'sessid',
      'asp_net_session_id',
    ],
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
    endings: ['pin', 'pin_code', 'pincode', 'otp', 'otp_code', 'totp', 'mfa_code', 'cvv', 'cvc', 'cvv2'],
    values: 'digits',
  },
  {
    name: 'not-a-secret',
    endings: [
      'page_token',
      'pagetoken',
      'next_token',
      'nexttoken',
      'prev_token',
      'previous_token',
      'continuation_token',
      'sync_token',
      'cursor_token',
      'cancel_token',
      'cancellation_token',
      'progress_token',
      'stop_token',
      'eos_token',
      'bos_token',
      'pad_token',
      'unk_token',
      'mask_token',
      'sep_token',
      'cls_token',
      'special_token',
      'cost_per_token',
      'price_per_token',
      'per_token',
      'ms_per_token',
      'by_pass',
      'first_pass',
      'second_pass',
      'multi_pass',
      'single_pass',
      'tests_pass',
      'test_pass',
    ],
    values: 'never',
  },
]

/** Endings that are told also where no word begins before them: `dbpassword`, `clientsecret`. */
export const GLUED_ENDINGS: readonly string[] = ['password', 'passwd', 'passphrase', 'apikey', 'secret', 'token']
