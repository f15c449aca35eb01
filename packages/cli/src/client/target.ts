import { loadConfig, type GatewayConfig } from '@toolgate/gateway'
import { CliError } from '../exit.ts'
import type { Io } from '../io.ts'

/** Which gateway is asked, and with which key. */
export interface Target {
  readonly url: string
  readonly key: string | undefined
  readonly keyHint: string
  readonly startHint: string
}

export interface TargetOptions {
  readonly url?: string
  readonly key?: string
  readonly config?: string
}

const DEFAULT_URL = 'http://127.0.0.1:8787'
const DEMO_KEY = 'demo-console'
const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/

/**
 * Finds the gateway to ask: `--url`, TOOLGATE_URL, where `--config` says that it listens, or the default.
 * The key is `--key`, TOOLGATE_KEY, or the console key that `--config` has as it is; on this machine,
 * without any, the quickstart's demo key is tried, which everybody knows.
 *
 * @throws {CliError} `usage`
 */
export function findTarget(options: TargetOptions, env: Io['env']): Target {
  const config = options.config === undefined ? undefined : loadConfig(options.config, { env })
  const url = checkUrl(options.url ?? (env['TOOLGATE_URL'] || (config ? urlOf(config) : DEFAULT_URL)))
  const key = options.key ?? (env['TOOLGATE_KEY'] || consoleKeyOf(config))
  const demo = LOOPBACK.test(new URL(url).hostname) ? DEMO_KEY : undefined
  return {
    url,
    key: key ?? demo,
    keyHint:
      key === undefined
        ? 'Give a console key with --key or TOOLGATE_KEY.'
        : 'The API takes a console key ("for: console" in the configuration), not that of an agent.',
    startHint:
      options.config === undefined
        ? 'Start one with "toolgate serve --config <file>" or "toolgate try", or give its address with --url.'
        : `Start it with "toolgate serve --config ${options.config}".`,
  }
}

function checkUrl(text: string): string {
  const url = URL.parse(text)
  if (!url || !/^https?:$/.test(url.protocol))
    throw new CliError('usage', `The address ${JSON.stringify(text)} is not a URL such as ${DEFAULT_URL}.`)
  return url.origin
}

function urlOf({ listen: { host, port } }: GatewayConfig): string {
  const reachable = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  return `http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`
}

function consoleKeyOf(config: GatewayConfig | undefined): string | undefined {
  return config?.callers.find((caller) => caller.for === 'console' && caller.demoKey !== undefined)?.demoKey
}
