import { isObject, type JsonObject } from '@toolgate/core/internal'

/** Words that name a secret, as whole words of a label. */
const WORDS: ReadonlySet<string> = new Set(
  (
    'password passwords passwd pwd passphrase passcode passwort kennwort passwoord wachtwoord contrasena senha parola ' +
    'haslo heslo losenord adgangskode secret secrets token tokens credential credentials pin tan otp totp cvv cvc cvn ' +
    'card cards kreditkarte iban ssn mnemonic 2fa mfa'
  ).split(' '),
)
/** Texts that name a secret wherever they are, also in spaced or glued words. */
const PARTS: readonly string[] = (
  'password passphrase passcode passwort motdepasse contrasena apikey secretkey privatekey accesskey accesstoken ' +
  'clientsecret cardnumber creditcard securitycode verificationcode onetimecode recoverycode backupcode authcode ' +
  'accesscode pincode seedphrase socialsecurity пароль 密码 密碼 口令 パスワード 暗証番号 비밀번호'
)
  .normalize('NFC')
  .split(' ')

/** A note that warns of entering secrets, as forms of real servers have it. */
const WARNING = /\((?:please )?(?:do not|don't|never) (?:enter|give|provide|share|type) [^():;.!?\n]{1,200}\)/gi

/** Whether a label names a secret, in whatever spelling: `apiKey`, `API_KEY`, `p a s s w o r d`. */
export function namesSecret(label: string): boolean {
  const words = label
    .replaceAll(WARNING, ' ')
    .normalize('NFKD')
    .replaceAll(/[\p{M}\p{Cf}]/gu, '')
    .replaceAll(/(\p{Ll}|\d)(\p{Lu})/gu, '$1 $2')
    .normalize('NFC')
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
  const glued = words.join('')
  return words.some((word) => WORDS.has(word)) || PARTS.some((part) => glued.includes(part))
}

const LABELS = ['title', 'description', 'format', 'default'] as const
const CHOICES = ['enum', 'oneOf', 'items'] as const

/**
 * Returns the property of a form that seems to ask for a secret, if any. Only properties with free text or numbers can
 * hold one.
 */
export function findSecret(message: string, properties: JsonObject): string | undefined {
  for (const [name, schema] of Object.entries(properties)) {
    if (!isObject(schema) || !isFree(schema)) continue
    const labels = [name, ...LABELS.map((label) => schema[label])].filter((label) => typeof label === 'string')
    if (labels.some(namesSecret)) return name
    // The message is the label of a property that says nothing itself.
    if (namesSecret(message)) return name
  }
  return undefined
}

function isFree(schema: JsonObject): boolean {
  const { type } = schema
  return type !== 'boolean' && !CHOICES.some((choice) => schema[choice] !== undefined)
}
