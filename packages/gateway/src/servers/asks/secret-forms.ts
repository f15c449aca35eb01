import { foldMarks, joinLetters } from '@toolgate/values/redact'
import { isObject, type JsonObject } from '@toolgate/values/json'

/** Words that name a secret, as whole words of a label. */
const WORDS: ReadonlySet<string> = new Set(
  (
    'password passwords passwd pwd passphrase passcode passwort kennwort passwoord wachtwoord contrasena senha parola ' +
    'hasło haslo heslo lösenord adgangskode salasana jelszó şifre secret secrets token tokens credential credentials ' +
    'pin pins tan otp otps totp cvv cvc cvn card cards kreditkarte iban ssn mnemonic 2fa mfa'
  )
    .split(' ')
    .map(foldMarks),
)
/** Texts that name a secret anywhere in a label, even if spaced or joined. */
const PARTS: readonly string[] = (
  'password passphrase passcode passwort motdepasse contrasena apikey secretkey privatekey accesskey accesstoken ' +
  'clientsecret cardnumber creditcard securitycode verificationcode onetimecode recoverycode backupcode authcode ' +
  'accesscode pincode seedphrase socialsecurity mậtkhẩu пароль 密码 密碼 口令 パスワード 暗証番号 비밀번호 암호 รหัสผ่าน'
)
  .split(' ')
  .map(foldMarks)

/** A warning not to enter secrets, as forms of real servers contain it. */
const WARNING = /\((?:please )?(?:do not|don't|never) (?:enter|give|provide|share|type) [^():;.!?\n]{1,200}\)/gi

/** Letters of other scripts, small capitals and symbols that look like a Latin letter, each before that letter. */
const LOOKALIKES: ReadonlyMap<string, string> = new Map(
  (
    'аa еe оo рp сc уy хx кk тt мm нh вb іi јj ѕs һh ԁd ԛq ԝw αa εe ιi κk νv οo ρp τt υu χx ωw ηn ' +
    'օo սu ոn ɑa ɡg ıi ᴀa ʙb ᴄc ᴅd ᴇe ꜰf ɢg ʜh ɪi ᴊj ᴋk ʟl ᴍm ɴn ᴏo ᴘp ʀr ꜱs ᴛt ᴜu ᴠv ᴡw ʏy ᴢz 0o 1i 3e 4a 5s 7t @a $s'
  )
    .split(' ')
    .map((pair) => [pair.charAt(0), pair.charAt(1)]),
)

/** Whether a label names a secret, in any spelling: `apiKey`, `API_KEY`, `p a s s w o r d`, `pa$$w0rd`. */
export function namesSecret(label: string): boolean {
  const text = foldMarks(label.replaceAll(WARNING, ' '))
  const read = text.replaceAll(/./gu, (sign) => LOOKALIKES.get(sign.toLowerCase()) ?? sign)
  return hasSecret(text) || hasSecret(read.toLowerCase())
}

function hasSecret(text: string): boolean {
  const words = joinLetters(text)
    .replaceAll(WORD_BREAK, ' ')
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
  const glued = words.join('')
  return [...words, glued].some(isSecretWord) || PARTS.some((part) => glued.includes(part))
}

/** A word break before a capital, and between an abbreviation and a word: `APIToken`, but not `PINs`. */
const WORD_BREAK = /(?<=[\p{Ll}\d])(?=\p{Lu})|(?<=\p{Lu})(?=\p{Lu}(?!s(?!\p{Ll}))\p{Ll})/gu

/** Whether a word names a secret. A number may follow: `CVV2`, `password1`. */
function isSecretWord(word: string): boolean {
  return WORDS.has(word) || WORDS.has(word.replace(/\d{1,4}$/, ''))
}

const LABELS = ['title', 'description', 'format', 'default'] as const
const TEXTS = ['title', 'description'] as const
const CHOICES = ['enum', 'oneOf', 'items'] as const

/**
 * Returns the property of a form that seems to ask for a secret, if any. Only a property with free text or numbers can
 * contain a secret.
 */
export function findSecret(message: string, properties: JsonObject): string | undefined {
  const schemas = Object.entries(properties).filter((entry): entry is [string, JsonObject] => isObject(entry[1]))
  const free = schemas.filter(([, schema]) => isFree(schema))
  const own = free.find(([name, schema]) => [name, ...textsOf(schema, LABELS)].some(namesSecret))
  if (own) return own[0]
  // If a property has no label, the message or the text of a choice is its label.
  const others = schemas.filter(([, schema]) => !isFree(schema)).flatMap(([, schema]) => textsOf(schema, TEXTS))
  return free.length > 0 && [message, ...others].some(namesSecret) ? free[0]?.[0] : undefined
}

function textsOf(schema: JsonObject, labels: readonly string[]): readonly string[] {
  return labels.map((label) => schema[label]).filter((text) => typeof text === 'string')
}

function isFree(schema: JsonObject): boolean {
  const { type } = schema
  return type !== 'boolean' && !CHOICES.some((choice) => schema[choice] !== undefined)
}
