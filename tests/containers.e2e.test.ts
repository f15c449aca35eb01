import assert from 'node:assert/strict'
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { loadConfig } from '@toolgate/gateway'
import { parse } from 'yaml'
import { type ModernServer, startModernServer } from '../packages/gateway/fixtures/modern-server.ts'
import { tempFolder, until } from './support/gateway.ts'
import { send } from './support/http.ts'
import { type Machine, makeMachine } from './support/machine.ts'
import { freePort } from './support/own-server.ts'

/** The image and the compose file, without a container: no machine of the tests runs Docker. Their command lines run as they are. */

const DOCKER = path.join(import.meta.dirname, '../deploy/docker')
const dockerfile = readFileSync(path.join(DOCKER, 'Dockerfile'), 'utf8').replaceAll('\\\n', '')
const final = dockerfile.slice(dockerfile.lastIndexOf('FROM '))
const lineOf = (instruction: string) =>
  new RegExp(`^${instruction} (.*)$`, 'm').exec(final)?.[1] ?? assert.fail(instruction)
const listOf = (instruction: string) => JSON.parse(lineOf(instruction)) as string[]

interface Compose {
  readonly services: Readonly<Record<string, Service>>
  readonly networks: Readonly<Record<string, { readonly ipam?: { readonly config: readonly { subnet: string }[] } }>>
  readonly volumes: object
  readonly secrets: object
}

interface Service {
  readonly image: string
  readonly stop_grace_period?: string
  readonly volumes: readonly string[]
  readonly networks: readonly string[] | Readonly<Record<string, { readonly ipv4_address?: string }>>
  readonly secrets?: readonly string[]
  readonly environment?: Readonly<Record<string, string>>
  readonly cap_drop?: readonly string[]
  readonly read_only?: boolean
}

const compose = parse(readFileSync(path.join(DOCKER, 'compose.yaml'), 'utf8')) as Compose
const config = readFileSync(path.join(DOCKER, 'toolgate.yaml'), 'utf8')

describe('deploy/docker/Dockerfile', () => {
  const folder = tempFolder()
  let server: ModernServer
  let machine: Machine
  let port: number

  before(async () => {
    server = await startModernServer()
    port = await freePort()
    machine = makeMachine(folder.path, {
      '/run/secrets': `${folder.path}/run/secrets`,
      8787: String(port),
      'https://mcp.example.com/mcp': server.url,
      'hash-of-vera-1': '0123456789abcdef'.repeat(4),
      'hash-of-owner-1': 'fedcba9876543210'.repeat(4),
    })
    mkdirSync(`${folder.path}/run/secrets`)
    writeFileSync(`${folder.path}/run/secrets/tickets-token`, 'token')
    mkdirSync(machine.at('/etc/toolgate'))
    writeFileSync(
      machine.at('/etc/toolgate/toolgate.yaml'),
      readFileSync(machine.at('/clone/deploy/docker/toolgate.yaml')),
    )
  })

  after(async () => {
    await server?.close()
    folder.remove()
  })

  it('runs as nobody in particular, from files that this user cannot change', () => {
    assert.match(lineOf('USER'), /^[1-9]\d{3,}:[1-9]\d{3,}$/)
    assert.ok(final.indexOf('COPY --from=install') < final.indexOf('USER '))
    assert.doesNotMatch(final, /--chown|:latest/)
    assert.match(final, new RegExp(`install -d -o ${lineOf('USER').replace(':', ' -g ')} `))
  })

  it('starts a gateway that its health check finds alive, and SIGTERM ends', async () => {
    const [, ...healthArgs] = JSON.parse(/^HEALTHCHECK .* CMD (\[.*\])$/m.exec(final)?.[1] ?? assert.fail()) as string[]
    const isHealthy = () => spawnSync(process.execPath, healthArgs.map(fit)).status
    assert.equal(isHealthy(), 1)
    const [command, ...args] = [...listOf('ENTRYPOINT'), ...listOf('CMD')]
    assert.equal(command, 'toolgate')
    const bin = path.join(import.meta.dirname, '../packages/cli/bin/toolgate.js')
    const child = spawn(process.execPath, ['--conditions=toolgate-source', bin, ...args.map(fit)], { stdio: 'ignore' })
    const ended = once(child, 'exit')
    try {
      await until(
        async () =>
          (await send(`http://127.0.0.1:${port}/readyz`, { method: 'GET' }).catch(() => undefined))?.status === 200,
      )
      assert.equal(isHealthy(), 0)
      assert.ok(existsSync(machine.at('/var/lib/toolgate/audit.db')))
    } finally {
      child.kill('SIGTERM')
    }
    assert.deepEqual(await ended, [0, null])
    assert.equal(isHealthy(), 1)
  })

  const fit = (text: string) =>
    text.replaceAll('8787', String(port)).replaceAll('/etc/toolgate', machine.at('/etc/toolgate'))
})

describe('deploy/docker/compose.yaml', () => {
  const { toolgate, caddy } = compose.services

  it('gives a stop more time than the gateway needs, and the container nothing to spare', () => {
    assert.ok(Number.parseInt(toolgate?.stop_grace_period ?? '', 10) >= 30 + 2)
    assert.deepEqual([toolgate?.read_only, toolgate?.cap_drop], [true, ['ALL']])
  })

  it('mounts files that there are, volumes and secrets that it names', () => {
    for (const { volumes, secrets = [] } of Object.values(compose.services)) {
      for (const [from = ''] of volumes.map((volume) => volume.split(':')))
        if (from.startsWith('.')) assert.ok(existsSync(path.join(DOCKER, from)), from)
        else if (!from.startsWith('/')) assert.ok(from in compose.volumes, from)
      for (const secret of secrets) {
        assert.ok(secret in compose.secrets, secret)
        assert.ok(config.includes(`\${file:/run/secrets/${secret}}`), secret)
      }
    }
  })

  it('has the proxy at the address that toolgate.yaml lists, in a network of the two', () => {
    const { listen } = parse(config) as {
      readonly listen: { readonly proxies: readonly string[]; readonly port: number }
    }
    const networks = caddy?.networks as Readonly<Record<string, { readonly ipv4_address?: string }>>
    assert.deepEqual(listen.proxies, [networks['inside']?.ipv4_address])
    const subnet = compose.networks['inside']?.ipam?.config[0]?.subnet ?? ''
    assert.ok(listen.proxies[0]?.startsWith(subnet.replace(/0\/24$/, '')))
    assert.equal(caddy?.environment?.['TOOLGATE_UPSTREAM'], `toolgate:${listen.port}`)
    const caddyfile = readFileSync(path.join(DOCKER, '../caddy/Caddyfile'), 'utf8')
    assert.ok(caddyfile.includes(`{$TOOLGATE_UPSTREAM:127.0.0.1:${listen.port}}`))
  })
})

describe('deploy/vector/vector.yaml', () => {
  interface Vector {
    readonly sources: Readonly<Record<string, { readonly type: string; readonly include?: readonly string[] }>>
    readonly sinks: Readonly<Record<string, { readonly inputs: readonly string[] }>>
  }
  const vector = parse(readFileSync(path.join(DOCKER, '../vector/vector.yaml'), 'utf8')) as Vector
  const folder = tempFolder()
  after(() => folder.remove())

  it('ships every source once', () => {
    const shipped = Object.values(vector.sinks).flatMap(({ inputs }) => inputs)
    assert.deepEqual(shipped.toSorted(), Object.keys(vector.sources).toSorted())
  })

  it('reads the files that a gateway writes, and what arrives line by line verifies', async () => {
    const state = path.join(folder.path, 'state')
    const file = path.join(state, 'audit.jsonl')
    const bin = path.join(import.meta.dirname, '../packages/cli/bin/toolgate.js')
    const toolgate = (...args: string[]) =>
      spawnSync(process.execPath, ['--conditions=toolgate-source', bin, ...args], { encoding: 'utf8' })
    const { openJsonlAudit } = await import('@toolgate/stores/jsonl')
    mkdirSync(state)
    const audit = openJsonlAudit({ path: file })
    for (let i = 0; i < 50; i++)
      await audit.write({ event: 'tool_result', wallMs: 1, policy_revision: 1, catalog_revision: 1 } as never)
    await audit.close()

    const arrived = Object.values(vector.sources).flatMap(({ include = [] }, i) =>
      include.flatMap((pattern) => {
        const place = pattern.replace('/var/lib/toolgate', state)
        if (place.includes('*')) return []
        assert.ok(existsSync(place), place)
        const to = path.join(folder.path, `arrived-${i}`)
        execFileSync('bash', [
          '-c',
          'while IFS= read -r line; do printf "%s\\n" "$line"; done < "$1" > "$2"',
          '-',
          place,
          to,
        ])
        return [to]
      }),
    )
    const [lines = '', checkpoints = ''] = arrived
    const key = path.join(state, 'checkpoints/audit.jsonl.checkpoints.pub')
    const verified = toolgate('audit', 'verify', '--file', lines, '--checkpoints', checkpoints, '--public-key', key)
    assert.equal(verified.status, 0, verified.stdout + verified.stderr)
    writeFileSync(lines, readFileSync(lines, 'utf8').replace('"tool_result"', '"tool_resulT"'))
    assert.equal(
      toolgate('audit', 'verify', '--file', lines, '--checkpoints', checkpoints, '--public-key', key).status,
      6,
    )
  })
})

describe('deploy/docker/replicas.yaml', () => {
  const text = readFileSync(path.join(DOCKER, 'replicas.yaml'), 'utf8').replaceAll(/\$\{\w+:\?\}/g, 'secret')
  const { services } = parse(text, { merge: true }) as Replicas
  const replicas = Object.entries(services).filter(([name]) => name.startsWith('replica-'))

  it('has three replicas, each with its own id and state, and all with one file that the gateway takes', (t) => {
    const folder = tempFolder()
    t.after(() => folder.remove())
    const file = path.join(folder.path, 'toolgate.yaml')
    const example = readFileSync(path.join(DOCKER, 'replicas-toolgate.yaml'), 'utf8')
    let hashes = 0
    writeFileSync(
      file,
      example.replaceAll(/hash-of-[\w-]+/g, () => String(++hashes).repeat(64)),
    )
    assert.equal(replicas.length, 3)
    for (const [name, { environment }] of replicas) {
      const read = loadConfig(file, { env: environment })
      assert.deepEqual([read.replica?.id, read.replica?.url], [name, `http://${name}:8787`])
    }
    const states = replicas.map(([, { volumes }]) => volumes.at(-1))
    assert.equal(new Set(states).size, 3)
  })

  it('names the replicas that HAProxy sends requests to', () => {
    const haproxy = readFileSync(path.join(DOCKER, '../haproxy/haproxy.cfg'), 'utf8')
    const sentTo = [...haproxy.matchAll(/^ {2}server \w+ +(\S+):8787$/gm)].map(([, name]) => name)
    assert.deepEqual(
      sentTo,
      replicas.map(([name]) => name),
    )
  })
})

interface Replicas {
  readonly services: Readonly<
    Record<string, { readonly environment: Readonly<Record<string, string>>; readonly volumes: readonly string[] }>
  >
}
