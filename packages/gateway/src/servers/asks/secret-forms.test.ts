import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { namesSecret } from './secret-forms.ts'

const SECRET: readonly string[] = [
  'パスワード',
  'パスワード'.normalize('NFD'),
  'ﾊﾟｽﾜｰﾄﾞ',
  '新しいパスワードを入力',
  '暗証番号',
  '密码',
  '비밀번호',
  'пароль',
  'Contraseña',
  'contrasena',
  'Mật khẩu',
  'hasło',
  'haslo',
  'Lösenord',
  'şifre',
  'รหัสผ่าน',
  'PIN',
  'Your P.I.N.',
  'a P.I.N',
  'p-i-n',
  'p i n',
  'c.v.v.',
  'CVV2',
  'cvc2',
  'C_V_V',
  'PINs',
  'userPIN',
  'PINNumber',
  'APIToken',
  'api_key',
  'API-Key',
  'pass-word',
  'pass word',
  'PWD',
  'p a s s w o r d',
  'pa$$w0rd',
  'password1',
  '2FA',
]

const HARMLESS: readonly string[] = [
  'spinning',
  'opinion',
  'pinned message',
  'Pinterest',
  'a.m. or p.m.',
  'Plan B',
  'e.g. a title',
  'キーワード',
  '密度',
  'пар',
  'vitamin-b 2',
  'tanning',
  'compass',
  'secretary',
  'tokenizer',
  'P.I.N.K',
]

describe('namesSecret', () => {
  for (const label of SECRET) it(`finds the secret in ${label}`, () => assert.equal(namesSecret(label), true))
  for (const label of HARMLESS) it(`finds none in ${label}`, () => assert.equal(namesSecret(label), false))
})
