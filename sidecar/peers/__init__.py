"""Exchanges producer ids and observations with other sidecars."""
