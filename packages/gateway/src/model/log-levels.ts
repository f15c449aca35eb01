/** The levels of log messages (RFC 5424), least severe first. */
const LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'] as const
export type LogLevel = (typeof LEVELS)[number]

/** Returns the level with this name, if it exists. */
export function toLogLevel(value: unknown): LogLevel | undefined {
  return LEVELS.find((level) => level === value)
}

/** Whether a message of this level is sent to a client that asked for `least` and above. */
export function isLogged(level: unknown, least: LogLevel): boolean {
  const known = toLogLevel(level)
  return known !== undefined && LEVELS.indexOf(known) >= LEVELS.indexOf(least)
}

/** Returns the least severe of these levels; `undefined` if there are none. */
export function leastSevere(levels: readonly LogLevel[]): LogLevel | undefined {
  return LEVELS.find((level) => levels.includes(level))
}
