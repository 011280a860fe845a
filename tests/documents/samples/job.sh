#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
sleep 60
