import * as z from 'zod'
import { isProxyRange } from '../../util/client-address.ts'
import { text } from './values.ts'

export const listenSchema = z.strictObject({
  host: text.describe('Default: 127.0.0.1. Beyond loopback, callers are required.').exactOptional(),
  port: z
    .int()
    .min(0, 'a port from 0 (any free one) to 65535')
    .max(65_535, 'a port from 0 (any free one) to 65535')
    .describe('Default: 8787. 0: any free one.')
    .exactOptional(),
  origins: z
    .array(z.string().regex(/^https?:\/\/[^/\s?#]+\/?$/, 'an origin, such as https://tools.example.com'))
    .describe('Further names it is reached by, such as https://tools.example.com in front of a proxy.')
    .exactOptional(),
  corsOrigins: z
    .array(
      z.string().refine(isPageOrigin, 'one origin, such as https://inspector.example.com, not * and without a path'),
    )
    .describe('Origins of web pages that may call /mcp and /mcp/<app> from the browser, with a key of their own.')
    .exactOptional(),
  proxies: z
    .array(z.string().refine(isProxyRange, 'an address such as 127.0.0.1, or a range such as 10.0.0.0/8'))
    .describe('Proxies in front. Only their X-Forwarded-For is read, to count wrong keys by client.')
    .exactOptional(),
  tls: z
    .strictObject({
      certFile: text.describe('PEM: the certificate, then those that lead to its authority.'),
      keyFile: text.describe('PEM: its private key, without a passphrase.'),
    })
    .describe('Serves HTTPS instead of HTTP. A reload reads both files again.')
    .exactOptional(),
})

function isPageOrigin(origin: string): boolean {
  return /^[a-z][a-z\d+.-]*:\/\/[^/\s?#*@]+\/?$/i.test(origin) && URL.canParse(origin)
}

const LOOPBACK_ORIGIN = /^http:\/\/(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/

export const publicUrlSchema = z
  .string()
  .refine(
    (url) =>
      URL.canParse(url) && new URL(url).origin === url && (url.startsWith('https://') || LOOPBACK_ORIGIN.test(url)),
    'an https origin without a path, such as https://tools.example.com, or one of loopback',
  )
  .describe(
    'The origin that people reach the gateway by: links to approvals begin with it. Default: where it listens, if that is loopback.',
  )

export const metricsSchema = z.strictObject({
  public: z.boolean().describe('Lets /metrics be read without a console key. Default: false.').exactOptional(),
})
