# SPDX-License-Identifier: Apache-2.0
"""Services that misbehave, run in the service's place inside its container.

`bent` is the real service with a bent tongue: slow, or mixing impossible decisions into its own.
`garbage` is no service at all: bytes, frames and messages that mean nothing.
"""
