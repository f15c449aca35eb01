import { ORIGINS, type Origin } from '../../core/src/ports/fact-read.ts'

/** Origins in their simplest form: all texts are stored, and each question reads them all. Without bounds. */
export interface NaiveOrigins {
  addWords(words: string): void
  addOutput(origin: 'trusted' | 'untrusted', output: unknown): void
  originOf(value: unknown): Origin
}

export function naiveOrigins(): NaiveOrigins {
  const seen = { user: [] as string[], trusted: [] as string[], untrusted: [] as string[] }

  function originOfText(text: string): Origin {
    const isAddress =
      Array.from(exactly(text)).length >= 4 && (/\p{L}/u.test(text) || text.replace(/\D/g, '').length >= 8)
    const isIn = (texts: readonly string[]) => isAddress && texts.some((each) => holdsWords(each, text))
    if (isIn(seen.user)) return 'user'
    if (seen.untrusted.some((each) => isSeenIn(each, text))) return 'untrusted'
    return isIn(seen.trusted) ? 'trusted' : 'unknown'
  }

  function originOfLeaf(leaf: unknown): Origin {
    if (typeof leaf === 'string') return originOfText(leaf)
    return seen.untrusted.some((each) => isSeenIn(each, String(leaf))) ? 'untrusted' : 'unknown'
  }

  return {
    addWords: (words) => void seen.user.push(exactly(words)),
    addOutput: (origin, output) =>
      void seen[origin].push(...textsOf(output).flatMap(origin === 'trusted' ? exactly : formsOf)),
    originOf(value) {
      const origins = new Set(leavesOf(value).map(originOfLeaf))
      return ORIGINS.find((origin) => origins.has(origin)) ?? 'unknown'
    },
  }
}

function textsOf(output: unknown): readonly string[] {
  if (Array.isArray(output)) return output.flatMap(textsOf)
  if (typeof output === 'string') return [output]
  if (typeof output === 'number') return [String(output)]
  if (typeof output !== 'object' || output === null) return []
  return Object.entries(output).flatMap(([key, value]) => [key, ...textsOf(value)])
}

function leavesOf(value: unknown): readonly unknown[] {
  if (value === null || value === undefined || value === '') return []
  if (typeof value !== 'object') return [value]
  if (Array.isArray(value)) return value.flatMap(leavesOf)
  return Object.entries(value).flatMap(([key, part]) => [key, ...leavesOf(part)])
}

/** Returns a text with white space collapsed and, word by word, hosts in lower case. */
function exactly(text: string): string {
  const parts = text.normalize('NFC').split(/([\s"<>()[\]{},;|]+)/)
  return parts
    .map((part, i) => (i % 2 === 0 ? withLowerHost(part) : part))
    .join('')
    .replace(/\s+/g, ' ')
    .trim()
}

function withLowerHost(word: string): string {
  const url = /^(.*?:\/\/)([^/?#]+)(.*)$/.exec(word)
  if (url) {
    const [, scheme = '', authority = '', rest = ''] = url
    const at = authority.lastIndexOf('@') + 1
    return scheme + authority.slice(0, at) + authority.slice(at).toLowerCase() + rest
  }
  const mail = /^(.*[\w.%+'-])(@[\w.-]+\.[\w-]+)(.*)$/.exec(word)
  if (mail) return (mail[1] ?? '') + (mail[2] ?? '').toLowerCase() + (mail[3] ?? '')
  return word.replace(
    /^((?:mailto:|\W)*)(www\.[\w.-]+)/i,
    (_, before: string, host: string) => before + host.toLowerCase(),
  )
}

const EDGE = String.raw`[\s"<>()\[\]{},;|]`

function holdsWords(text: string, value: string): boolean {
  const spellings = [exactly(value).replace(/[^\w\s]/g, String.raw`\$&`)]
  const account = value.replace(/\s/g, '')
  if (/^[A-Z]{2}\d{2}[A-Z\d]{11,30}$/.test(account))
    spellings.push(`${account.slice(0, 4)} ?${Array.from(account.slice(4)).join(' ?')}`)
  return spellings.some((spelling) =>
    new RegExp(`(?:^|${EDGE})(?:['\`]*|['\`]*mailto:)${spelling}(?=[.!?:'\`]*(?:$|${EDGE}))`).test(text),
  )
}

function isSeenIn(form: string, value: string): boolean {
  const spellings = [value, ...hostsOf(value)].flatMap(formsOf)
  return form !== '' && spellings.some((spelling) => form.includes(spelling))
}

function formsOf(text: string): readonly string[] {
  const folded = Array.from(text).map(foldCharacter).join('')
  const decoded = folded.replace(/%([2-7][\da-f])/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
  return [folded, Array.from(decoded).map(foldCharacter).join('')]
}

function foldCharacter(character: string): string {
  return character
    .normalize('NFKD')
    .toLowerCase()
    .replace(/[\s\p{C}\p{M}]/gu, '')
}

function hostsOf(value: string): readonly string[] {
  const found: string[] = []
  for (const word of value.split(/[\s"<>()[\]{},;|'\\]+/)) {
    const token = word.replace(/[.:!?]+$/, '')
    const hosts = token
      .split('//')
      .slice(1)
      .map(
        (rest) =>
          rest
            .split(/[/?#&]/)[0]
            ?.split('@')
            .at(-1) ?? '',
      )
    if (/^[\w-]+(\.[\w-]+)+[/:?#]/.test(token)) hosts.push(token.split(/[/:?#]/)[0] ?? '')
    for (const host of hosts) {
      const labels = host.replace(/:\d*$/, '').split('.')
      for (let i = 0; i + 1 < labels.length; i++) found.push(labels.slice(i).join('.'))
    }
    if (token.includes('@') && !token.includes('/')) found.push(token.replace(/^mailto:/i, '').split('?')[0] ?? '')
    if (/^[A-Z]{2}\d{2}[A-Z\d]{11,30}$/i.test(token)) found.push(token)
  }
  return found
}
