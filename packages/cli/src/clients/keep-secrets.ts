import type { EntrySecrets } from '../project/secret-files.ts'
import { isSecretHeader, isSecretVariable, secretOfArgument, secretsOfUrl } from './secret-values.ts'

/** Returns a variable's value, or the reference to the file that keeps it. */
export function keepVariable(name: string, value: string, kept: EntrySecrets): string {
  return isSecretVariable(name, value) ? kept.refer(name, `env.${name}`, value) : value
}

/** Returns a header's value, or the reference to the file that keeps it. Its scheme stays readable. */
export function keepHeader(name: string, value: string, kept: EntrySecrets): string {
  if (!isSecretHeader(name, value)) return value
  const [, scheme = ''] = /^((?:Bearer|Basic|Token) +)\S/i.exec(value) ?? []
  return `${scheme}${kept.refer(name, `headers.${name}`, value.slice(scheme.length))}`
}

/** Returns an argument, with a reference in place of its secret. `before`: the argument before it. */
export function keepArgument(value: string, before: string | undefined, index: number, kept: EntrySecrets): string {
  const secret = secretOfArgument(value, before)
  if (secret === undefined) return value
  return `${value.slice(0, value.length - secret.length)}${kept.refer(`arg-${index + 1}`, `args[${index}]`, secret)}`
}

/** Returns a URL whose secrets are references. Its user and password become a header, as a gateway takes them in no URL. */
export function keepUrl(value: string, kept: EntrySecrets): { readonly url: string; readonly login?: string } {
  const { bare, parts, login } = secretsOfUrl(value)
  const url = parts.reduce((text, part) => text.replace(part.text, () => kept.refer(part.name, 'url', part.text)), bare)
  if (!login) return { url }
  const basic = Buffer.from(`${login.user}:${login.password}`).toString('base64')
  return { url, login: `Basic ${kept.refer('login', 'the login in url', basic)}` }
}
