import { checkObject, ConfigError, didYouMean, nearestOf } from '@toolgate/values'

/** The type of `process.env`. */
export type Environment = Readonly<Record<string, string | undefined>>

/** The endings of variables that apply in some chats only. */
const SUFFIXES = ['', '_DM', '_GROUP'] as const

/** All variables with rules. */
const KNOWN: readonly string[] = [
  ...['ALLOWLIST', 'DENYLIST', 'ASKLIST', 'ALLOWED_SENDERS', 'SENDERS'].flatMap((list) =>
    SUFFIXES.map((suffix) => `TOOL_${list}${suffix}`),
  ),
  'TOOL_OWNERS',
  'TOOL_RATE_LIMITS',
]

/**
 * Checks that no variable extends, misspells or means a known one: `TOOL_DENYLIST_GROUPS`, `TOOL_DENY_LIST`,
 * `tool_denylist` and `TOOL_BLOCKLIST` would deny nothing.
 *
 * @throws {ConfigError} naming the variable
 */
export function checkVariables(env: Environment): void {
  checkObject('environment', env)
  for (const variable of Object.keys(env)) {
    if (KNOWN.includes(variable) || env[variable] === undefined) continue
    const spelt = nearestOf(variable, KNOWN, 1)
    // On Windows, the names of variables ignore letter case.
    if (spelt !== undefined && env[spelt] === env[variable]) continue
    const words = wordsOf(variable)
    if (spelt === undefined && !KNOWN.some((base) => variable.startsWith(base)) && !mayBeRule(words)) continue
    const meant = spelt ?? meaningOf(words) ?? KNOWN.findLast((base) => variable.startsWith(base))
    const hint = meant === undefined ? didYouMean(variable, KNOWN) : `; did you mean "${meant}"?`
    throw new ConfigError(variable, `unknown variable${hint || `; the variables are ${KNOWN.join(', ')}`}`)
  }
}

/** The words for a rule, by the variable that has it. */
const RULE_WORDS = {
  DENYLIST:
    /^(?:DENY|DENIED|DENYLIST(?:ED)?|BLACK(?:LIST|LISTED)?|BLOCK(?:ED|LIST|LISTED)?|FORBID(?:DEN)?|BAN(?:NED)?|DISABLED?|DISALLOW(?:ED)?|EXCLUDED?|REJECT(?:ED)?|PROHIBIT(?:ED)?)S?$/,
  ALLOWLIST:
    /^(?:ALLOW(?:ED|LIST|LISTED)?|WHITE(?:LIST|LISTED)?|SAFELIST|PERMIT(?:TED)?|ENABLED?|INCLUDED?|ACCEPT(?:ED)?|ONLY)S?$/,
  ASKLIST: /^(?:ASK|ASKED|ASKLIST|APPROVED?|APPROVAL|CONFIRM(?:ED)?|CONFIRMATION)S?$/,
  RATE_LIMITS: /^(?:RATE|RATELIMIT(?:ED)?|LIMIT(?:ED)?|THROTTLED?|QUOTA)S?$/,
} as const
type RuleName = keyof typeof RULE_WORDS

const PERSON = /^(?:SENDER|USER|OWNER|ADMIN|PERSON|PEOPLE)S?$/
const CHATS = [
  ['_DM', /^(?:DM|PM|PRIVATE|DIRECT)S?$/],
  ['_GROUP', /^(?:GROUP|SUPERGROUP|CHANNEL|ROOM)S?$/],
] as const
const TOOL = /^TOOLS?$/
/** Words without a meaning of their own. */
const FILLER =
  /^(?:TOOLS?|LISTS?|CHATS?|CALLS?|MAX|PER|FOR|IN|BY|TO|AUTO|REQUIRED?|NEEDS?|SECONDS?|MINUTES?|HOURS?|DAYS?)$/
/** Last words of variables that set something else, such as `TOOL_BLOCK_SIZE`. */
const OTHER_SETTING = /^(?:SIZE|TIMEOUT|MS|SECONDS|URL|BYTES|TOKENS|ORIGINS?)$/

function wordsOf(variable: string): readonly string[] {
  return variable.toUpperCase().split('_').filter(Boolean)
}

function ruleOf(word: string | undefined): RuleName | undefined {
  if (word === undefined) return undefined
  return (Object.keys(RULE_WORDS) as readonly RuleName[]).find((name) => RULE_WORDS[name].test(word))
}

/**
 * Returns whether a name could have been meant as a rule: `TOOL_` with a word for a rule after it, or `TOOL` or `TOOLS`
 * among nothing but such words, as in `ALLOWED_TOOLS`.
 */
function mayBeRule(words: readonly string[]): boolean {
  const [first = '', second, third = ''] = words
  const last = words.at(-1) ?? ''
  if (!TOOL.test(first) && !TOOL.test(last)) return false
  if (!words.some((word) => ruleOf(word) !== undefined)) return false
  if (words.every((word) => ruleOf(word) !== undefined || isAround(word))) return true
  const rule = TOOL.test(first) ? ruleOf(second) : undefined
  if (rule === undefined) return false
  if (rule === 'RATE_LIMITS') return second?.startsWith('RATELIMIT') === true || /^LIMITS?$/.test(third)
  return !OTHER_SETTING.test(last) || /LIST/.test(second ?? '')
}

function isAround(word: string): boolean {
  return FILLER.test(word) || PERSON.test(word) || CHATS.some(([, chat]) => chat.test(word))
}

/** Returns the variable that these words mean; `undefined` if they mean no variable. */
function meaningOf(words: readonly string[]): string | undefined {
  const rule = words.map(ruleOf).find((name) => name !== undefined)
  // No variable approves calls.
  if (rule === undefined || words.includes('AUTO')) return undefined
  if (rule === 'RATE_LIMITS') return 'TOOL_RATE_LIMITS'
  const isAboutPeople = words.some((word) => PERSON.test(word))
  // No variable lists people who may not write.
  if (isAboutPeople && rule === 'DENYLIST') return undefined
  const suffix = CHATS.find(([, chat]) => words.some((word) => chat.test(word)))?.[0] ?? ''
  return `TOOL_${isAboutPeople && rule === 'ALLOWLIST' ? 'ALLOWED_SENDERS' : rule}${suffix}`
}
