import path from 'node:path'
import type { NextConfig } from 'next'

const config: NextConfig = {
  // They run in Node as they are: the gate is one object of the process.
  serverExternalPackages: ['@toolgate/core', '@toolgate/adapters', 'ai', 'zod', '@ai-sdk/openai-compatible'],
  turbopack: { root: path.join(import.meta.dirname, '../..') },
  typescript: { ignoreBuildErrors: true }, // the tests compile it
  devIndicators: false,
}
export default config
