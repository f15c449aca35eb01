import { hash, randomBytes } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import path from 'node:path'
import { errnoOf, messageOf } from '@toolgate/values'
import { CliError, type ExitName } from '../exit.ts'
import { type Io, painter, printable, printJson, printLine } from '../io.ts'
import { initFile } from '../project/init-file.ts'
import { createFile, isTaken } from '../new-file.ts'
import { keysPath, type PlainKey, writeKeys } from '../project/keys-file.ts'

export interface InitOptions {
  readonly json?: boolean
}

/** `toolgate init`: writes a configuration with two roles, and their keys. Asks nothing, and replaces no file. */
export async function initCommand(folder: string, { json }: InitOptions, io: Io): Promise<ExitName> {
  const config = path.join(folder, 'toolgate.yaml')
  for (const file of [config, keysPath(config)])
    if (isTaken(file))
      throw new CliError('usage', `${printable(file)} exists already. Nothing was changed.`, {
        hint: 'Use it as it is, or choose another folder: toolgate init <folder>.',
      })
  const keys = [newKey('reader', 'mcp'), newKey('writer', 'mcp'), newKey('owner', 'console')] as const
  const [reader, writer, owner] = keys
  try {
    mkdirSync(folder, { recursive: true })
    writeKeys(config, keys)
    createFile(config, initFile({ reader: hashOf(reader), writer: hashOf(writer), owner: hashOf(owner) }))
  } catch (cause) {
    if (cause instanceof CliError) throw cause
    throw new CliError('no', `${printable(config)} cannot be written (${errnoOf(cause) ?? messageOf(cause)}).`, {
      cause,
    })
  }
  if (json) printJson(io.stdout, { config, keys: keysPath(config), users: keys.map(({ user }) => user) })
  else printNext(folder, config, io)
  return 'ok'
}

function newKey(user: string, use: PlainKey['for']): PlainKey {
  return { user, for: use, key: `tg_${randomBytes(24).toString('base64url')}` }
}

function hashOf({ key }: PlainKey): string {
  return `sha256:${hash('sha256', key, 'hex')}`
}

function printNext(folder: string, config: string, io: Io): void {
  const paint = painter(io.stdout, io.env)
  const made = (file: string, what: string) => `${paint('green', 'made')}  ${printable(file)}  ${what}`
  const lines = [
    made(config, 'roles reader and writer, and a person who approves'),
    made(path.relative('.', keysPath(config)), 'their keys, for your eyes only'),
    '',
    paint('bold', 'Next'),
    ...(path.resolve(folder) === path.resolve('.') ? [] : [`  cd ${printable(folder)}`]),
    '  toolgate add files -- npx -y @modelcontextprotocol/server-filesystem@2026.8.31 ./   your servers: a command',
    '  toolgate add docs https://example.com/mcp                                 or a URL',
    '  toolgate serve                                                            the gateway and its console',
    '  toolgate tools --as reader                                                what each role sees',
    '  toolgate test --init                                                      a first test of the policy',
    '  toolgate connect claude-code --as reader                                  your client',
  ]
  for (const line of lines) printLine(io.stdout, line)
}
