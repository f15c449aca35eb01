import type { ListRow } from './wire.ts'

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** Returns a duration with one or two significant digits: `3 ms`, `1.4 s`, `2 min`, `3 h`. */
export function formatDuration(ms: number): string {
  if (ms < 1) return '< 1 ms'
  if (ms < SECOND) return `${Math.round(ms)} ms`
  if (ms < 10 * SECOND) return `${(ms / SECOND).toFixed(1)} s`
  if (ms < MINUTE) return `${Math.round(ms / SECOND)} s`
  if (ms < HOUR) return `${Math.round(ms / MINUTE)} min`
  if (ms < 2 * DAY) return `${Math.round(ms / HOUR)} h`
  return `${Math.round(ms / DAY)} days`
}

/** Returns how long ago a time was: `just now`, `40 s ago`, `3 h ago`. */
export function formatAgo(thenMs: number, nowMs: number): string {
  const ms = nowMs - thenMs
  return ms < 5 * SECOND ? 'just now' : `${formatDuration(ms)} ago`
}

/** Returns how far away a time is: `in 9 min`, or `now`. */
export function formatIn(thenMs: number, nowMs: number): string {
  return thenMs <= nowMs ? 'now' : `in ${formatDuration(thenMs - nowMs)}`
}

/**
 * Returns a time in the user's zone: `14:03:05` today, `27 Nov 14:03` on another day, and with its year in another year:
 * `27 Nov 2025 14:03`.
 */
export function formatTime(ms: number, nowMs: number): string {
  const [then, now] = [new Date(ms), new Date(nowMs)]
  const clock = formatClock(ms)
  if (then.toDateString() === now.toDateString()) return clock
  const year = then.getFullYear() === now.getFullYear() ? '' : ` ${then.getFullYear()}`
  return `${formatDay(ms)}${year} ${clock.slice(0, -3)}`
}

/** Returns a time to the millisecond in the user's zone: `27 Nov 2026 14:03:05.120 UTC+01:00`. */
export function formatExact(ms: number): string {
  const date = new Date(ms)
  const away = -date.getTimezoneOffset()
  const zone = [Math.trunc(Math.abs(away) / 60), Math.abs(away) % 60].map((n) => String(n).padStart(2, '0')).join(':')
  const fraction = String(date.getMilliseconds()).padStart(3, '0')
  return `${formatDay(ms)} ${date.getFullYear()} ${formatClock(ms)}.${fraction} UTC${away < 0 ? '-' : '+'}${zone}`
}

/** Returns the time of day in the user's zone: `09:05:00`. `Intl` would load its tables before the first view. */
export function formatClock(ms: number): string {
  const date = new Date(ms)
  return [date.getHours(), date.getMinutes(), date.getSeconds()].map((n) => String(n).padStart(2, '0')).join(':')
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sept', 'Oct', 'Nov', 'Dec']

function formatDay(ms: number): string {
  const date = new Date(ms)
  return `${date.getDate()} ${MONTHS[date.getMonth()]}`
}

/** Returns a number with its noun: `1 tool`, `2 tools`. */
export function count(n: number, noun: string): string {
  return `${n} ${plural(n, noun)}`
}

/** Returns `tool` for one, and `tools` for any other number. */
export function plural(n: number, noun: string): string {
  return n === 1 ? noun : `${noun}${noun.endsWith('ch') ? 'es' : 's'}`
}

/** Returns a clause as a sentence, with a capital and a full stop. */
export function toSentence(clause: string): string {
  const text = clause.trim()
  if (text === '') return ''
  const capital = text.replace(/^\p{Ll}/u, (letter) => letter.toUpperCase())
  return /[.!?…]$/.test(capital) ? capital : `${capital}.`
}

/** Returns the duration since a time: `for 3 min`. */
export function formatFor(sinceMs: number, nowMs: number): string {
  const ms = Math.max(SECOND, nowMs - sinceMs)
  return ms < MINUTE ? `for ${Math.floor(ms / SECOND)} s` : `for ${formatDuration(ms)}`
}

/** Returns a number in the same format for every locale: `12`, `1,204`. */
export function formatNumber(n: number): string {
  const [whole = '', fraction] = String(Math.round(n * 1000) / 1000).split('.')
  const grouped = whole.replaceAll(/\B(?=(?:\d{3})+$)/g, ',')
  return fraction === undefined ? grouped : `${grouped}.${fraction}`
}

/** Returns a limit with the unit of its window: `web:*: 100 in 1 min per user` for `web:*:100/60 per user`. */
export function limitText(written: string): string {
  return written.replace(/:(\d+)\/(\d+(?:\.\d+)?)(?= |$)/, (_, max: string, seconds: string) => {
    return `: ${formatNumber(Number(max))} in ${formatDuration(Number(seconds) * SECOND)}`
  })
}

const INSTANCE_STATES = ['running', 'idle', 'starting', 'down'] as const

/** Returns a text about instances: `an instance for each user: 1 running, 2 idle`, or `none yet`. */
export function instancesText(counts: Readonly<Record<(typeof INSTANCE_STATES)[number], number>>): string {
  const parts = INSTANCE_STATES.flatMap((state) => (counts[state] > 0 ? [`${counts[state]} ${state}`] : []))
  return `an instance for each user: ${parts.join(', ') || 'none yet'}`
}

/** Returns a text about the users whose lists are displayed, for servers with a list per user. */
export function listsText(lists: readonly ListRow[]): string {
  return lists.map(listText).join(' ')
}

function listText({ server, user = '', tenant, state, reason = 'their first request starts it' }: ListRow): string {
  const who = tenant === undefined ? user : `${tenant} / ${user}`
  switch (state) {
    case 'known':
      return `The list of ${server} is the one for ${who}.`
    case 'unknown':
      return `The list of ${server} for ${who} is not known yet: ${reason}.`
    case 'no_user':
      return `${server} lists for each user, and this caller has none.`
    case 'withheld':
      return `${server} lists for each user: only approvers and the user see the list.`
  }
}
