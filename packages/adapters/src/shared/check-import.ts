import { ConfigError } from '@toolgate/core'

/**
 * Checks what a host passes to import its tools.
 *
 * @throws {ConfigError} for anything but a list
 */
export function checkList(tools: unknown, of: string): void {
  if (!Array.isArray(tools)) throw new ConfigError('tools', `must be a list of ${of}`, { code: 'tool_invalid' })
}

/** @throws {ConfigError} for anything but a record */
export function checkRecord(tools: unknown, of: string): void {
  if (typeof tools !== 'object' || tools === null || Array.isArray(tools))
    throw new ConfigError('tools', `must be a record of ${of} by name, such as { search }`, { code: 'tool_invalid' })
}
