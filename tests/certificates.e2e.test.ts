import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { connect } from 'node:tls'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { loadConfig } from '@toolgate/gateway'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { withBinaries } from './support/binaries.ts'
import { createAuthority } from './support/certificates.ts'
import { runCommand } from './support/command.ts'
import { startTestGateway, tempFolder, type TestGateway, until } from './support/gateway.ts'
import { send } from './support/http.ts'
import { KEYS } from './support/keys.ts'
import { MODERN } from './support/rpc.ts'
import { nodeServer } from './support/servers.ts'

/** The certificate of a gateway: what it must be, and how it is renewed while clients are connected. */

const SLOW = join(import.meta.dirname, 'support/slow-server.js')

withBinaries(['openssl'], ({ openssl }) => {
  const folder = tempFolder()
  const [certFile, keyFile] = [join(folder.path, 'served.pem'), join(folder.path, 'served.key')]
  let authority: ReturnType<typeof createAuthority>

  before(() => {
    authority = createAuthority(openssl, folder.path)
  })
  after(() => folder.remove())

  /** As certbot does: both files are replaced. */
  function serve(name: string): string {
    const issued = authority.issue(name)
    copyFileSync(issued.certFile, certFile)
    copyFileSync(issued.keyFile, keyFile)
    return new X509Certificate(readFileSync(certFile)).fingerprint256
  }

  describe('listen.tls in a file', () => {
    const check = (tls: object) => {
      const file = join(folder.path, 'toolgate.yaml')
      writeFileSync(file, JSON.stringify({ servers: {}, listen: { tls }, policy: [{ allow: ['*'] }] }))
      return loadConfig(file, { env: {} })
    }

    it('takes a certificate with its key, beside the file', () => {
      serve('first')
      assert.deepEqual(check({ certFile: 'served.pem', keyFile }).listen.tls, { certFile, keyFile })
    })

    it('names what cannot be used, and quotes nothing of it', () => {
      const other = authority.issue('other')
      const sealed = join(folder.path, 'sealed.key')
      const lines = readFileSync(keyFile, 'utf8')
      execFileSync(openssl, ['pkey', '-aes256', '-passout', 'pass:secret', '-in', keyFile, '-out', sealed])
      for (const [tls, message] of [
        [{ certFile, keyFile: other.keyFile }, /1:\d+: listen\.tls\.keyFile: is not the key of the certificate/],
        [{ certFile, keyFile: certFile }, /listen\.tls\.keyFile: does not hold a private key in PEM/],
        [{ certFile: keyFile, keyFile }, /listen\.tls\.certFile: does not hold a certificate in PEM/],
        [
          { certFile, keyFile: sealed },
          /listen\.tls\.keyFile: does not hold a private key in PEM, without a passphrase/,
        ],
        [{ certFile: folder.path, keyFile }, /listen\.tls\.certFile: .* cannot be read: it is not a file/],
      ] as const)
        assert.throws(
          () => check(tls),
          ({ message: said }: Error) => {
            assert.match(said, message)
            assert.ok(
              !lines.split('\n').some((line) => line.length > 20 && !line.startsWith('-') && said.includes(line)),
            )
            return true
          },
        )
    })
  })

  describe('a gateway with listen.tls', () => {
    let gateway: TestGateway

    before(async () => {
      serve('first')
      gateway = await startTestGateway(
        { listen: { host: '127.0.0.1', port: 0, tls: { certFile, keyFile } }, servers: [nodeServer('slow', [SLOW])] },
        () => ({}),
      )
    })
    after(() => gateway?.close())

    const served = () =>
      new Promise<string>((resolve, reject) => {
        const socket = connect({ port: gateway.port, host: '127.0.0.1', servername: 'localhost' }, () => {
          resolve(socket.getPeerX509Certificate()?.fingerprint256 ?? '')
          socket.destroy()
        })
        socket.once('error', reject)
      })

    it('has https in its address, and speaks no HTTP', async () => {
      assert.equal(gateway.url, `https://127.0.0.1:${gateway.port}`)
      await assert.rejects(send(`http://127.0.0.1:${gateway.port}/healthz`, { method: 'GET' }))
      await assert.rejects(
        new Promise((resolve, reject) => {
          const old = { maxVersion: 'TLSv1.1', minVersion: 'TLSv1', ciphers: 'DEFAULT@SECLEVEL=0' } as const
          connect({ port: gateway.port, host: '127.0.0.1', ...old }, () => resolve('connected')).once('error', reject)
        }),
      )
    })

    it('is reached by the command, and by clients on stdio', async () => {
      const { code, out, err } = await runCommand(gateway.url, 'tools', '--as', 'viewer')
      assert.equal(code, 0, err)
      assert.match(out, /slow:echo/)
      const bin = join(import.meta.dirname, '../packages/cli/bin/toolgate.js')
      const args = ['--conditions=toolgate-source', bin, 'stdio', '--url', gateway.url, '--key', KEYS.viewer]
      const env = { ...process.env, NODE_EXTRA_CA_CERTS: authority.file } as Record<string, string>
      const client = new ClientV1({ name: 'c', version: '1' })
      await client.connect(new StdioClientTransport({ command: process.execPath, args, env }))
      const { tools } = await client.listTools()
      assert.ok(tools.some(({ name }) => name === 'slow__echo'))
      await client.close()
    })

    it('serves a renewed certificate after a reload, and no stream breaks', async () => {
      let heard = 0
      const listChanged = { tools: { autoRefresh: false, debounceMs: 0, onChanged: () => void heard++ } }
      const client = new Client(
        { name: 'c', version: '1' },
        { listChanged, versionNegotiation: { mode: { pin: MODERN } } },
      )
      const requestInit = { headers: { authorization: `Bearer ${KEYS.admin}` } }
      await client.connect(new StreamableHTTPClientTransport(new URL(gateway.mcpUrl), { requestInit }))
      const streams = async () =>
        /^toolgate_list_streams (\d)$/m.exec(
          (
            await send(`${gateway.url}/metrics`, {
              method: 'GET',
              headers: { authorization: `Bearer ${KEYS.console}` },
            })
          ).text,
        )?.[1]
      await until(async () => (await streams()) === '1')
      const former = await served()
      assert.deepEqual((await gateway.reload()).text, ['nothing has changed'])
      const renewed = serve('second')
      assert.equal(await served(), former)
      assert.deepEqual((await gateway.reload({ isDryRun: true })).text, ['this would change', '~ listen: certificate'])
      assert.equal(await served(), former)
      assert.deepEqual((await gateway.reload()).text, ['revision 2', '~ listen: certificate'])
      assert.equal(await served(), renewed)
      assert.equal(await streams(), '1')
      gateway.gate.setPolicy({ deny: ['*'] })
      await until(() => heard > 0)
      await client.close()
    })

    it('goes on with the old one if the new one cannot be used', async () => {
      const former = await served()
      writeFileSync(certFile, 'half a certifica')
      await assert.rejects(gateway.reload(), /listen\.tls\.certFile: does not hold a certificate/)
      assert.equal(await served(), former)
    })

    it('tells when the certificate ends', async () => {
      const { text } = await send(`${gateway.url}/metrics`, {
        method: 'GET',
        headers: { authorization: `Bearer ${KEYS.console}` },
      })
      const ends = Number(/^toolgate_certificate_expires_seconds (\d+)$/m.exec(text)?.[1])
      assert.ok(ends * 1000 > Date.now() && ends * 1000 < Date.now() + 3 * 24 * 3_600_000)
    })
  })
})
