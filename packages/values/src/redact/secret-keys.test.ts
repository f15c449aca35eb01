import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { redactor } from './redact.ts'

/** Keys, a value, and the marker that stands for it. */
const SECRET: readonly (readonly [string, unknown, string])[] = [
  ['password', 'hunter2', 'password'],
  ['PASSWORD', 'x', 'password'],
  ['passwd', 'x', 'password'],
  ['pwd', 'x', 'password'],
  ['dbPassword', 'x', 'password'],
  ['DB_PASSWORD', 'x', 'password'],
  ['dbpassword', 'x', 'password'],
  ['new-password2', 'x', 'password'],
  ['password', 123456, 'password'],
  ['passphrase', 'a b c', 'password'],
  ['secret', 'x', 'secret'],
  ['clientSecret', 'x', 'secret'],
  ['client_secret', 'x', 'secret'],
  ['token', 'x', 'token'],
  ['accessToken', 'x', 'token'],
  ['refresh_token', 'x', 'token'],
  ['id-token', 'x', 'token'],
  ['X-Auth-Token', 'x', 'token'],
  ['access_tokens', ['x'], 'token'],
  ['apiKey', 'x', 'api-key'],
  ['api_key', 'x', 'api-key'],
  ['apikey', 'x', 'api-key'],
  ['x-api-key', 'x', 'api-key'],
  ['APIKey', 'x', 'api-key'],
  ['Ocp-Apim-Subscription-Key', 'x', 'api-key'],
  ['AccountKey', 'x', 'api-key'],
  ['privateKey', 'x', 'secret-key'],
  ['private_key', 'x', 'secret-key'],
  ['aws_secret_access_key', 'x', 'secret-key'],
  ['Authorization', 'x', 'authorization'],
  ['proxy-authorization', 'x', 'authorization'],
  ['Cookie', 'a=b', 'cookie'],
  ['set-cookie', ['a=b'], 'cookie'],
  ['credential', 'x', 'credential'],
  ['credentials', { user: 'a', pass: 'b' }, 'credential'],
  ['JSESSIONID', 'x', 'session'],
  ['session_token', 'x', 'session'],
  ['session', '8f14e45fceea167a5a36dedd4bea2543', 'session'],
  ['sessionId', '0b5e1f3c-2d7a-4f6e-9c8b-1a2b3c4d5e6f', 'session'],
  ['pin', 1234, 'pin'],
  ['pin', '123456', 'pin'],
  ['otp', '123456', 'pin'],
  ['P.I.N.', 1234, 'pin'],
  ['p-i-n', '1234', 'pin'],
  ['c.v.v.', '123', 'pin'],
  ['CVV2', '123', 'pin'],
  ['card_cvc2', '123', 'pin'],
  ['PIN-Number', '1234', 'pin'],
  ['securityCode', '123', 'pin'],
  ['pass-word', 'x', 'password'],
  ['PWD', 'x', 'password'],
  ['Api.Key', 'x', 'api-key'],
  ['パスワード', 'x', 'password'],
  ['パスワード'.normalize('NFD'), 'x', 'password'],
  ['ﾊﾟｽﾜｰﾄﾞ', 'x', 'password'],
  ['ログインパスワード2', 'x', 'password'],
  ['登录密码', 'x', 'password'],
  ['日本語pwd', 'x', 'password'],
  ['contraseña', 'x', 'password'],
  ['contrasena', 'x', 'password'],
  ['Mot de passe', 'x', 'password'],
  ['Lösenord'.normalize('NFD'), 'x', 'password'],
  ['dbPasswort', 'x', 'password'],
  ['Benutzerkennwort', 'x', 'password'],
  ['hasło', 'x', 'password'],
  ['ПАРОЛЬ', 'x', 'password'],
  ['비밀번호', 'x', 'password'],
  ['รหัสผ่าน', 'x', 'password'],
  ['暗証番号', '1234', 'pin'],
  ['ｐａｓｓｗｏｒｄ', 'x', 'password'],
]

const HARMLESS: readonly (readonly [string, unknown])[] = [
  ['tokens', 20],
  ['token_count', 20],
  ['max_tokens', 20],
  ['maxTokens', 20],
  ['tokenizer', 'o200k'],
  ['tokenType', 'Bearer'],
  ['nextPageToken', 'abc'],
  ['page_token', 'abc'],
  ['next_token', 'abc'],
  ['progressToken', 'p1'],
  ['author', 'Ann'],
  ['authority', 'x'],
  ['authenticated', true],
  ['key', 'a'],
  ['keys', ['a']],
  ['public_key', 'ssh-ed25519 AAAA'],
  ['primaryKey', 'id'],
  ['idempotency-key', 'a1'],
  ['keyboard', 'qwerty'],
  ['secretary', 'Ann'],
  ['passenger', 'Ann'],
  ['compass', 'north'],
  ['bypass', 'yes'],
  ['passed', 12],
  ['session', 's1'],
  ['session', 'afternoon session'],
  ['session_id', 's1'],
  ['pin', 'message'],
  ['pin', true],
  ['spinning', 1234],
  ['opinion', 1234],
  ['p.i.n.k', 1234],
  ['a_b_c', 1234],
  ['vitamin-b', 1234],
  ['word', 'pass'],
  ['senhas por dia', 12],
  ['ワード', 'x'],
  ['密度', 'x'],
  ['spin', 1234],
  ['pinned', 1234],
  ['cookieConsent', 'yes'],
  ['password', null],
  ['password', ''],
  ['token', true],
  ['auth', 'basic'],
  ['design', 'x'],
]

describe('keys that name a secret', () => {
  for (const [key, value, name] of SECRET) {
    it(`hide ${key}: ${JSON.stringify(value)}`, () => {
      assert.deepEqual(redactor.redactValue({ [key]: value }), { [key]: `[redacted:${name}]` })
    })
  }
  for (const [key, value] of HARMLESS) {
    it(`leave ${key}: ${JSON.stringify(value)}`, () => {
      assert.deepEqual(redactor.redactValue({ [key]: value }), { [key]: value })
    })
  }
  it('hide the value of a pair of a name and a value, and the value after a flag', () => {
    assert.deepEqual(
      redactor.redactValue([{ name: 'DB_PASSWORD', value: 'x' }, ['--token', 'x', '--max-tokens', '5']]),
      [{ name: 'DB_PASSWORD', value: '[redacted:password]' }, ['--token', '[redacted:token]', '--max-tokens', '5']],
    )
  })
})

/** Texts before and after. */
const TEXTS: readonly (readonly [string, string])[] = [
  ['Authorization: Bearer abc.def', 'Authorization: [redacted:authorization]'],
  ['authorization: Basic dTpw, next', 'authorization: [redacted:authorization], next'],
  ['Authorization: Digest username="u", response="r"\nAccept: x', 'Authorization: [redacted:authorization]\nAccept: x'],
  ["curl -H 'Authorization: Bearer abc' https://h", "curl -H 'Authorization: [redacted:authorization]' https://h"],
  ['password=hunter2', 'password=[redacted:password]'],
  ['(password=hunter2)', '(password=[redacted:password])'],
  ['password=correct%20horse&a=1', 'password=[redacted:password]&a=1'],
  ['PGPASSWORD=hunter2 psql', 'PGPASSWORD=[redacted:password] psql'],
  ['password: "correct horse" # x', 'password: "[redacted:password]" # x'],
  ["{'password': 'it is'}", "{'password': '[redacted:password]'}"],
  ['password => hunter2', 'password => [redacted:password]'],
  ['user[password]=hunter2', 'user[password]=[redacted:password]'],
  ['tool --token abc --max-tokens 5', 'tool --token [redacted:token] --max-tokens 5'],
  ['tool --api-key="a b" x', 'tool --api-key="[redacted:api-key]" x'],
  ['{"apiKey":"a\\"b","n":1}', '{"apiKey":"[redacted:api-key]","n":1}'],
  ['"{\\"apiKey\\":\\"ab\\",\\"n\\":1}"', '"{\\"apiKey\\":\\"[redacted:api-key]\\",\\"n\\":1}"'],
  ['GET /x?access_token=abc&n=1', 'GET /x?access_token=[redacted:token]&n=1'],
  ['?next=%2Fx%3Ftoken%3Dabc%26n%3D1', '?next=%2Fx%3Ftoken%3D[redacted:token]%26n%3D1'],
  ['postgres://app:hunter2@db:5432/x', 'postgres://app:[redacted:url-password]@db:5432/x'],
  ['https://0123456789abcdef0123@h/x', 'https://[redacted:url-user]@h/x'],
  ['Cookie: a=b; c=d\r\nHost: h', 'Cookie: [redacted:cookie]\r\nHost: h'],
  ['Set-Cookie: a=b; Path=/', 'Set-Cookie: [redacted:cookie]'],
  ['パスワード=hunter2 x', 'パスワード=[redacted:password] x'],
  ['新しいパスワード: hunter2 x', '新しいパスワード: [redacted:password] x'],
  ['contraseña: "a b"', 'contraseña: "[redacted:password]"'],
  ['日本語password=hunter2', '日本語password=[redacted:password]'],
  ['Your P.I.N.: 1234, thanks', 'Your P.I.N.: [redacted:pin], thanks'],
  ['c.v.v.=123 CVV2: 456', 'c.v.v.=[redacted:pin] CVV2: [redacted:pin]'],
  ['AccountName=a;AccountKey=YWJj;x=1', 'AccountName=a;AccountKey=[redacted:api-key];x=1'],
]

const HARMLESS_TEXTS: readonly string[] = [
  'password: string',
  'token: null',
  'password=${DB_PASSWORD}',
  'token = process.env.TOKEN',
  'max_tokens=5 token_count: 7 tokens: 20',
  'author: Ann',
  'https://user@host/x',
  'https://host:8080/a@b',
  'git@github.com:a/b.git',
  'Basic authentication and bearer tokens are explained below',
  'the password is asked for at the door',
  'session: 2',
  'an opinion: 1234, spinning: 1234, e.g.: 1234, at 5 p.m.: 1234',
  'naïve: 1234, ワード: x, see config.in: 1234',
  'at 12:30:45 the files:read_file tool ran',
]

describe('keys in texts', () => {
  for (const [text, redacted] of TEXTS) {
    it(`hide ${text}`, () => assert.equal(redactor.redactText(text), redacted))
  }
  for (const text of HARMLESS_TEXTS) {
    it(`leave ${text}`, () => assert.equal(redactor.redactText(text), text))
  }
})
